// What Python calls (through ctypes): plain functions, plain numbers, no exception crosses.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "model.h"
#include "pack.h"

namespace {

thread_local char complaint[200] = "";

template <class Work>
int guarded(const Work& work) {
    try {
        work();
        return 0;
    } catch (const std::exception& error) {
        std::snprintf(complaint, sizeof complaint, "%s", error.what());
        return -1;
    }
}

}  // namespace

extern "C" {

int cutaway_version() { return 5; }

const char* cutaway_error() { return complaint; }

// The name of the kernels that would be used: the best there are, or null when `name` cannot run here.
const char* cutaway_kernels(const char* name) {
    const Kernels* found = find_kernels(name);
    return found ? found->name : nullptr;
}

uint64_t cutaway_matrix_bytes(int32_t kind, int32_t rows, int32_t inputs) {
    return Matrix{static_cast<Kind>(kind), rows, inputs, nullptr}.bytes();
}

// With a factor (int4 only; see pack.h) the rounding makes up for itself.
int32_t cutaway_pack(int32_t kind, int32_t rows, int32_t inputs, const float* weights, uint8_t* into, int32_t threads,
                     const float* factor) {
    return guarded([&] {
        const Matrix matrix{static_cast<Kind>(kind), rows, inputs, nullptr};
        Threads(threads).run(std::min(matrix.tiles(), 60000), [&](int piece, int) {
            const int pieces = std::min(matrix.tiles(), 60000);
            for (int tile = piece; tile < matrix.tiles(); tile += pieces) {
                const float* own = weights + static_cast<size_t>(tile) * TILE * inputs;
                if (factor && matrix.kind == INT4)
                    pack_tile_int4(matrix, into, own, tile, factor);
                else
                    pack_tiles(matrix, into, own, tile, tile + 1);
            }
        });
    });
}

void cutaway_unpack(int32_t kind, int32_t rows, int32_t inputs, const uint8_t* packed, float* into) {
    const Matrix matrix{static_cast<Kind>(kind), rows, inputs, packed};
    for (int row = 0; row < rows; row++) unpack_row(matrix, row, into + static_cast<size_t>(row) * inputs);
}

// One product by the named kernels, for tests: [count, inputs] x packed [rows, inputs] -> out [count, rows].
int32_t cutaway_product(const char* name, int32_t kind, int32_t rows, int32_t inputs, const uint8_t* packed,
                        int32_t count, const float* x, float* out) {
    return guarded([&] {
        const Kernels* kernels = find_kernels(name);
        if (kernels == nullptr) throw std::runtime_error("no such kernels here");
        const Matrix matrix{static_cast<Kind>(kind), rows, inputs, packed};
        const size_t padded = matrix.padded();
        std::vector<float> real(count * padded), scales(up(count, 16) * padded);
        std::vector<int8_t> ints(up(count, 16) * padded * 2);
        std::vector<int32_t> sums(up(count, 16) * padded);
        const Rows from{matrix.kind, count, matrix.padded(), real.data(), padded, ints.data(), padded * 2, scales.data(),
                        sums.data(), std::min(count, kernels->together)};
        for (int row = 0; row < count; row++) {
            std::copy_n(x + static_cast<size_t>(row) * inputs, inputs, real.data() + row * padded);
            if (kernels->quantises(matrix.kind)) kernels->quantise(x + static_cast<size_t>(row) * inputs, inputs, from, row);
        }
        kernels->product(matrix, 0, matrix.tiles(), from, {STORE, GELU_TANH, nullptr, out, static_cast<size_t>(rows)},
                         {1024, packed + matrix.bytes(), nullptr});
    });
}

// How many seconds reading memory from front to back takes, each thread a part of it, as products with one row do: what
// `cutaway bench` holds them against.
double cutaway_read_memory(const uint8_t* memory, uint64_t bytes, int32_t threads) {
    using Line = uint64_t __attribute__((vector_size(64), aligned(1), may_alias));
    constexpr int PIECES = 16, AHEAD = 8192;
    std::vector<uint64_t> sums(static_cast<size_t>(threads) * PIECES);
    volatile uint64_t all = 0;  // so that nothing is left out
    Threads pool(threads);
    double seconds = 0;
    for (int pass = 0; pass < 2; pass++) {  // the first one wakes the threads
        const auto begun = std::chrono::steady_clock::now();
        pool.run(threads * PIECES, [&](int piece, int) {
            const uint64_t lines = bytes / 64, first = lines * piece / sums.size(), last = lines * (piece + 1) / sums.size();
            Line total[4] = {};
            for (uint64_t line = first; line + 4 <= last; line += 4)
                for (int i = 0; i < 4; i++) {
                    __builtin_prefetch(memory + 64 * (line + i) + AHEAD, 0, 2);
                    total[i] += *reinterpret_cast<const Line*>(memory + 64 * (line + i));
                }
            sums[piece] = (total[0] + total[1] + total[2] + total[3])[0];
        });
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
        for (uint64_t sum : sums) all = all + sum;
    }
    return seconds;
}

uint64_t cutaway_model_bytes(const Shape* shape) { return Layout(*shape).bytes; }

// The places of all tensors, in the order of cutaway.runtime.native.pack.tensors; returns how many there are.
int32_t cutaway_model_layout(const Shape* shape, uint64_t* places) {
    const Layout layout(*shape);
    uint64_t* at = places;
    *at++ = layout.tokens;
    if (!shape->relative) *at++ = layout.positions;
    for (const auto& layer : layout.layers) {
        for (size_t place : {layer.attention_norm, layer.attention_norm_bias, layer.qkv, layer.qkv_bias}) *at++ = place;
        if (shape->relative) *at++ = layer.distances;
        for (size_t place : {layer.merge, layer.merge_bias, layer.mlp_norm, layer.mlp_norm_bias, layer.widen,
                             layer.widen_bias, layer.mlp_projection, layer.mlp_projection_bias})
            *at++ = place;
    }
    *at++ = layout.final_norm;
    *at++ = layout.final_norm_bias;
    if (!shape->shares_tokens()) *at++ = layout.output;
    return static_cast<int32_t>(at - places);
}

void* cutaway_open(const Shape* shape, const uint8_t* weights, int32_t threads, const char* name) {
    Model* model = nullptr;
    guarded([&] {
        const Kernels* kernels = find_kernels(name);
        if (kernels == nullptr) throw std::runtime_error("no such kernels here");
        model = new Model(*shape, weights, std::max(1, threads), *kernels);
    });
    return model;
}

// How many bytes ahead weights are fetched (the speed changes, and nothing else), instead of finding out.
void cutaway_fetch_ahead(void* model, int32_t bytes) { static_cast<Model*>(model)->fetch_ahead(bytes); }

// What was found to be best; 0 while that is being tried.
int32_t cutaway_fetches_ahead(void* model) { return static_cast<Model*>(model)->fetches_ahead(); }

void cutaway_close(void* model) { delete static_cast<Model*>(model); }

void* cutaway_text_new(const void* model) { return static_cast<const Model*>(model)->text().release(); }

void* cutaway_text_fork(const void* text) {
    void* other = nullptr;
    guarded([&] { other = static_cast<const Text*>(text)->fork().release(); });
    return other;
}

int32_t cutaway_text_trim(void* text, int32_t length) {
    return guarded([&] { static_cast<Text*>(text)->trim(length); });
}

int32_t cutaway_text_length(const void* text) { return static_cast<const Text*>(text)->length; }

uint64_t cutaway_text_bytes(const void* text) { return static_cast<const Text*>(text)->bytes(); }

void cutaway_text_free(void* text) { delete static_cast<Text*>(text); }

// Ids and lengths have been checked by the caller.
int32_t cutaway_read(void* model, int32_t texts, void* const* which, const int32_t* counts, const int32_t* ids,
                     const int32_t* wanted, float* scores) {
    return guarded([&] {
        static_cast<Model*>(model)->read(texts, reinterpret_cast<Text* const*>(which), counts, ids, wanted, scores);
    });
}

}  // extern "C"
