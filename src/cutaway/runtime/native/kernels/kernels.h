// The arithmetic, once for each kind of processor: the same functions behind one table, chosen when the program runs.
//
// Whatever the number of rows in a call, of threads, or of texts in the batch, each number is computed by the same
// operations in the same order: a text's scores do not depend on who it is read with. Whole numbers are summed exactly,
// so that for int8 and int4 every processor gives the sums that kernels_plain.cpp gives.
#pragma once

#include "layout.h"

// Rows of activations, one for each token. Whole numbers come with a scale (and their sum) for each group.
struct Rows {
    Kind kind;          // of the matrix they are to meet
    int count, padded;  // padded: numbers in a row, a whole number of groups
    float* real;        // [count, stride], for float32 and bfloat16; zeros after the last input
    size_t stride;
    int8_t* ints;       // for int8 and int4; or pairs of bytes, for bfloat16 that is rounded. See `byte`
    size_t ints_stride;  // bytes
    float* scales;      // of each group: see `group`
    int32_t* sums;      // the same: what is taken off a group's sum of products, less than zero. An int4 weight is
                        // multiplied as weight + 8, an int8 one as weight + 128 where bytes must not be negative
    int together;       // rows that lie side by side: four bytes of one, of the next, ..., then the next four bytes

    // Where the bytes of a row from number `at` on lie, four of them in one piece.
    size_t byte(int row, int at) const {
        return ints_stride * (row - row % together) + static_cast<size_t>(at) * together + 4 * (row % together);
    }
    size_t group(int row, int number, int groups) const {
        return static_cast<size_t>(row - row % together) * groups + static_cast<size_t>(number) * together + row % together;
    }
};

// How a matrix is read by few rows, which is as fast as memory is: how far ahead, and what comes after it.
struct Reading {
    int ahead;            // bytes
    const uint8_t* end;   // of what this thread reads of the matrix
    const uint8_t* next;  // where it will go on in the next one; null: nowhere
};

// The weights of one tile's rows for the inputs from `first` to before `last`.
struct Strip {
    const uint8_t* weights;
    const uint16_t* scales;  // of the tile, for int8 and int4
    int first, last;
    const uint8_t* ahead;    // is fetched meanwhile: `pace` bytes for each 64 of the weights
    int pace;
};

enum Ending : int32_t { STORE, ACTIVATE, ADD };
enum Activation : int32_t { GELU_TANH, GELU, RELU, SILU };

// What becomes of a product: + bias, then stored, through the activation, or added to what is there.
struct Finish {
    Ending ending;
    Activation activation;
    const float* bias;  // padded to whole tiles, or null
    float* out;
    size_t stride;      // from one token's numbers to the next one's
};

// One head's attention to the past by some consecutive tokens of one text.
struct Attention {
    const float* queries;
    size_t query_stride;
    float* out;
    size_t out_stride;
    int count, first;            // how many tokens, and the position of the first
    int width;                   // of the head
    float scale;
    float* const* blocks;        // of the text's cache; in truth of bfloat16 where attention is rounded
    size_t keys_at, values_at;   // numbers from the beginning of a block to this layer's and head's part
    const float* distances;      // relative attention: [width][context], the farthest first; null: there is none
    int context;
    float* scratch;              // [QUERIES, scratch_stride]: a query's weights, then from sums_at on what it gathers
    size_t scratch_stride, sums_at;
};

constexpr int BLOCK = 64;   // tokens in a block of the cache
constexpr int LANES = 16;   // keys side by side in it: [BLOCK / LANES][head width][LANES]; of bfloat16 [.. / 2][LANES][2],
                            // and of values, [BLOCK][head width, padded], then [BLOCK / 2][head width, padded][2]
constexpr int QUERIES = 24; // queries that attend together

struct Kernels {
    const char* name;
    bool rounds;   // the activations that meet bfloat16 to bfloat16
    int together;  // rows that it likes side by side at most
    void (*product)(const Matrix&, int first_tile, int last_tile, const Rows&, const Finish&, const Reading&);
    void (*normalise)(const float* x, int width, const float* weight, const float* bias, float epsilon, float* out);
    void (*quantise)(const float* x, int width, const Rows& into, int row);
    void (*attend)(const Attention&);
    void (*attend_rounded)(const Attention&);  // to keys and values in bfloat16, where weights are rounded; null: it has none

    bool quantises(Kind kind) const { return is_quantised(kind) || (kind == BFLOAT16 && rounds); }
};

extern const Kernels PLAIN;
#if defined(__x86_64__)
extern const Kernels AVX2;
extern const Kernels AVX512BW;
extern const Kernels AVX512;
extern const Kernels AVX512BF16;
#elif defined(__aarch64__)
extern const Kernels NEON;
#endif

// The best for this processor, or the one of that name; null if there is none or this processor cannot run it.
const Kernels* find_kernels(const char* name);
