// What a text keeps between steps: keys and values, in blocks of 64 tokens for all layers and heads.
// Texts that begin alike share their full blocks; the one they differ in is copied.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
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
    size_t keys_size() const { return static_cast<size_t>(BLOCK) * head_width(); }
    size_t values_size() const { return BLOCK * up(head_width(), LANES); }
    size_t keys_at(int layer, int head) const {
        return (static_cast<size_t>(layer) * heads + head) * (keys_size() + values_size());
    }
    size_t values_at(int layer, int head) const { return keys_at(layer, head) + keys_size(); }
    size_t block_size() const { return keys_at(layers, 0); }
};

class Text {
  public:
    explicit Text(const Shape& shape) : shape_(shape) {}
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
    size_t bytes() const { return blocks_.size() * shape_.block_size() * sizeof(float); }

    void put(int layer, int head, int position, const float* keys, const float* values) {
        float* block = raw_[position / BLOCK];
        const int at = position % BLOCK, width = shape_.head_width(), row = static_cast<int>(up(width, LANES));
        float* lane = block + shape_.keys_at(layer, head) + static_cast<size_t>(at / LANES) * LANES * width + at % LANES;
        for (int d = 0; d < width; d++) lane[d * LANES] = keys[d];
        std::memcpy(block + shape_.values_at(layer, head) + static_cast<size_t>(at) * row, values, sizeof(float) * width);
    }

  private:
    using Held = std::shared_ptr<float>;

    Held new_block() const {  // zeros: what is masked is multiplied by zero, and must be a number
#if defined(MADV_HUGEPAGE)
        if (!blocks_.empty())  // a text that goes on: its memory comes in large pages, each asked for once
            if (Held block = large_pages(shape_.block_size() * sizeof(float))) return block;
#endif
        auto* memory = static_cast<float*>(std::calloc(shape_.block_size(), sizeof(float)));
        if (memory == nullptr) throw std::bad_alloc();
        return Held(memory, std::free);
    }

#if defined(MADV_HUGEPAGE)
    static Held large_pages(size_t bytes) {
        constexpr size_t page = 2 << 20;
        if (bytes < page) return nullptr;
        void* room = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED) return nullptr;
        const size_t skip = up(reinterpret_cast<uintptr_t>(room), page) - reinterpret_cast<uintptr_t>(room);
        auto* memory = static_cast<char*>(room) + skip;
        madvise(memory, bytes, MADV_HUGEPAGE);
        auto* numbers = reinterpret_cast<float*>(memory);
        return Held(numbers, [room, all = bytes + page](float*) { munmap(room, all); });
    }
#endif

    void add(Held block) {
        raw_.push_back(block.get());
        blocks_.push_back(std::move(block));
    }

    void own_last() {
        Held copy = new_block();
        std::memcpy(copy.get(), raw_.back(), shape_.block_size() * sizeof(float));
        raw_.back() = copy.get();
        blocks_.back() = std::move(copy);
    }

    Shape shape_;
    std::vector<Held> blocks_;
    std::vector<float*> raw_;
};
