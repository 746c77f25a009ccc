// What a text keeps between steps: keys and values, in blocks of 64 tokens for all layers and heads.
// Texts that begin alike share their full blocks; the one they differ in is copied.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "kernels.h"

struct Shape {  // as the Python side has it: see cutaway.runtime.native.library
    int32_t vocabulary, context, width, layers, heads, mlp_width;
    int32_t activation, tied, scale_by_layer, relative, kind;
    float norm_epsilon;

    bool shares_tokens() const { return tied && kind != INT4; }  // as output matrix
    int head_width() const { return width / heads; }
    size_t keys_size() const { return BLOCK * up(head_width(), 2); }
    size_t values_size() const { return BLOCK * up(head_width(), LANES); }
    size_t keys_at(int layer, int head) const {
        return (static_cast<size_t>(layer) * heads + head) * (keys_size() + values_size());
    }
    size_t values_at(int layer, int head) const { return keys_at(layer, head) + keys_size(); }
    size_t block_size() const { return keys_at(layers, 0); }
};

// How a text's keys and values are kept.
struct Keeping {
    Shape shape;
    bool rounded;  // in bfloat16

    size_t block_bytes() const { return shape.block_size() * (rounded ? sizeof(uint16_t) : sizeof(float)); }
};

// Blocks that texts have given back, as many as one of full length has: for the next text, without asking the system for
// memory that it must fill with zeros first. What the last text left there is never looked at.
class Spare {
  public:
    explicit Spare(const Shape& shape) : most_(up(shape.context, BLOCK) / BLOCK) {}

    using Block = std::unique_ptr<float, std::function<void(float*)>>;

    Block take() {
        std::lock_guard<std::mutex> alone(busy_);
        if (blocks_.empty()) return nullptr;
        Block block = std::move(blocks_.back());
        blocks_.pop_back();
        return block;
    }

    void give(Block block) {
        std::lock_guard<std::mutex> alone(busy_);
        if (blocks_.size() < most_) blocks_.push_back(std::move(block));
    }

  private:
    const size_t most_;
    std::mutex busy_;
    std::vector<Block> blocks_;
};

class Text {
  public:
    Text(const Keeping& keeping, std::shared_ptr<Spare> spare)
        : keeping_(keeping), shape_(keeping.shape), spare_(std::move(spare)) {}
    int length = 0;

    void make_room(int tokens) {
        while (static_cast<int>(blocks_.size()) * BLOCK < tokens) add(new_block());
    }

    // Forget what comes after the first `tokens`. The keys of another text stay whole: a shared block is copied.
    void trim(int tokens) {
        length = tokens < length ? tokens : length;
        const size_t keep = up(length, BLOCK) / BLOCK;
        blocks_.resize(keep);
        raw_.resize(keep);
        if (length % BLOCK && blocks_.back().use_count() > 1) own_last();
    }

    std::unique_ptr<Text> fork() const {
        auto other = std::make_unique<Text>(*this);
        if (length % BLOCK) other->trim(length);
        return other;
    }

    float* const* blocks() const { return raw_.data(); }
    size_t bytes() const { return blocks_.size() * keeping_.block_bytes(); }

    void put(int layer, int head, int position, const float* keys, const float* values) {
        if (keeping_.rounded) return put_rounded(layer, head, position, keys, values);
        float* block = raw_[position / BLOCK];
        const int at = position % BLOCK, width = shape_.head_width(), row = static_cast<int>(up(width, LANES));
        float* lane = block + shape_.keys_at(layer, head) + static_cast<size_t>(at / LANES) * LANES * width + at % LANES;
        for (int d = 0; d < width; d++) lane[d * LANES] = keys[d];
        std::memcpy(block + shape_.values_at(layer, head) + static_cast<size_t>(at) * row, values, sizeof(float) * width);
    }

  private:
    void put_rounded(int layer, int head, int position, const float* keys, const float* values) {
        auto* block = reinterpret_cast<uint16_t*>(raw_[position / BLOCK]);
        const int at = position % BLOCK, width = shape_.head_width(), row = static_cast<int>(up(width, LANES));
        uint16_t* lane = block + shape_.keys_at(layer, head) + at / LANES * LANES * up(width, 2) + 2 * (at % LANES);
        for (int d = 0; d + 1 < width; d += 2, lane += 2 * LANES) {
            const uint32_t both = to_bfloat16(keys[d]) | static_cast<uint32_t>(to_bfloat16(keys[d + 1])) << 16;
            std::memcpy(lane, &both, 4);
        }
        if (width % 2) *lane = to_bfloat16(keys[width - 1]);
        uint16_t* couples = block + shape_.values_at(layer, head) + static_cast<size_t>(at / 2) * 2 * row;
        if (at % 2 == 0) {  // the other one's are zeros until it comes
            for (int d = 0; d < width; d++) {
                const uint32_t both = to_bfloat16(values[d]);
                std::memcpy(couples + 2 * d, &both, 4);
            }
        } else {
            for (int d = 0; d < width; d++) couples[2 * d + 1] = to_bfloat16(values[d]);
        }
    }

    using Held = std::shared_ptr<float>;

    Held new_block() const {
        Spare::Block block = spare_->take();
        if (!block) block = new_memory();
        auto given = block.get_deleter();
        return Held(block.release(), [spare = spare_, given](float* numbers) { spare->give({numbers, given}); });
    }

    Spare::Block new_memory() const {
#if defined(MADV_HUGEPAGE)
        if (!blocks_.empty())  // a text that goes on: its memory comes in large pages, each asked for once
            if (Spare::Block block = large_pages(keeping_.block_bytes())) return block;
#endif
        auto* memory = static_cast<float*>(std::calloc(1, keeping_.block_bytes()));
        if (memory == nullptr) throw std::bad_alloc();
        return {memory, std::free};
    }

#if defined(MADV_HUGEPAGE)
    static Spare::Block large_pages(size_t bytes) {
        constexpr size_t page = 2 << 20;
        if (bytes < page) return nullptr;
        void* room = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) return nullptr;
        const size_t skip = up(reinterpret_cast<uintptr_t>(room), page) - reinterpret_cast<uintptr_t>(room);
        auto* memory = static_cast<char*>(room) + skip;
        madvise(memory, bytes, MADV_HUGEPAGE);
        auto* numbers = reinterpret_cast<float*>(memory);
        return {numbers, [room, all = bytes + page](float*) { munmap(room, all); }};
    }
#endif

    void add(Held block) {
        raw_.push_back(block.get());
        blocks_.push_back(std::move(block));
    }

    void own_last() {
        Held copy = new_block();
        std::memcpy(copy.get(), raw_.back(), keeping_.block_bytes());
        raw_.back() = copy.get();
        blocks_.back() = std::move(copy);
    }

    Keeping keeping_;
    Shape shape_;
    std::shared_ptr<Spare> spare_;
    std::vector<Held> blocks_;
    std::vector<float*> raw_;
};
