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
    int8_t* ints;       // [count, ints_stride], for int8 and int4; or pairs of bytes, for bfloat16 that is rounded
    size_t ints_stride;  // bytes
    float* scales;      // [count, groups]
    int32_t* sums;      // [count, groups]; for int4 see `taken_off`
};

// An int4 weight is multiplied as weight + 8, so that 8 x the sum of its group's x is to be taken off again. `sums` holds
// that, less than zero, as two numbers of 16 bits: for the first two of each four inputs, and for the other two.
inline int32_t taken_off(int32_t both) { return static_cast<int16_t>(both & 0xffff) + (both >> 16); }

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
    float* const* blocks;        // of the text's cache
    size_t keys_at, values_at;   // where this layer's and head's part begins in a block
    float* scratch;              // [QUERIES, scratch_stride]: a query's weights, then from sums_at on what it gathers
    size_t scratch_stride, sums_at;
};

constexpr int BLOCK = 64;   // tokens in a block of the cache
constexpr int LANES = 16;   // keys side by side in it: [BLOCK / LANES][head width][LANES]
constexpr int QUERIES = 24; // queries that attend together

struct Kernels {
    const char* name;
    bool rounds;  // the activations that meet bfloat16 to bfloat16
    void (*product)(const Matrix&, int first_tile, int last_tile, const Rows&, const Finish&);
    void (*normalise)(const float* x, int width, const float* weight, const float* bias, float epsilon, float* out);
    void (*quantise)(const float* x, int width, const Rows& into, int row);
    void (*attend)(const Attention&);

    bool quantises(Kind kind) const { return is_quantised(kind) || (kind == BFLOAT16 && rounds); }
};

extern const Kernels PLAIN;
#if defined(__x86_64__)
extern const Kernels AVX2;
extern const Kernels AVX512;
extern const Kernels AVX512BF16;
#endif

// The best for this processor, or the one of that name; null if there is none or this processor cannot run it.
const Kernels* find_kernels(const char* name);
