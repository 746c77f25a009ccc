// For processors with AVX-512 but not its dot product of bytes: Intel's servers before 2019.
#if defined(__x86_64__)
#include "kernels.h"

#include <cmath>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512vl")
#endif

namespace {

#include "avx512.inc"

// What is taken off again: see Rows. Here as two numbers of 16 bits, for the first two of each four inputs and the others.
inline int32_t taken_off(Kind, int32_t first_two, int32_t last_two) {
    return static_cast<int32_t>((static_cast<uint32_t>(-8 * first_two) & 0xffff) | static_cast<uint32_t>(-8 * last_two) << 16);
}

// Adds in this order: left to itself the compiler makes all the products first and keeps them on the stack.
inline __m512i added32(__m512i sum, __m512i more) {
    sum = _mm512_add_epi32(sum, more);
    asm("" : "+v"(sum));
    return sum;
}

inline __m512i added16(__m512i sum, __m512i more) {
    sum = _mm512_add_epi16(sum, more);
    asm("" : "+v"(sum));
    return sum;
}

// vpmaddubsw multiplies unsigned by signed bytes and adds two neighbours: |w| x (x with w's sign) is at most
// 2 x 127 x 127 = 32,258, which 16 bits hold. Four instructions for 64 products, as many as products of float32 would take.
template <int T>
ALONE void strip_int8(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const int groups = x.padded / 64;
    const size_t step = 4 * static_cast<size_t>(x.together), pace = strip.pace;
    const int8_t* from = x.ints + x.byte(row, strip.first);
    const float* outer = x.scales + x.group(row, strip.first / 64, groups);
    const __m512i ones = _mm512_set1_epi16(1), zeros = _mm512_setzero_si512();
    for (int g = strip.first / 64; g < strip.last / 64; g++, outer += x.together) {
        __m512i whole[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) whole[t] = zeros;
#pragma GCC unroll 2
        for (int k = 0; k < 16; k++, weights += 64, ahead += pace, from += step) {
            fetch(ahead);
            const __m512i sixteen = _mm512_loadu_si512(weights), sizes = _mm512_abs_epi8(sixteen);
            const __mmask64 negative = _mm512_movepi8_mask(sixteen);
#pragma GCC unroll 16
            for (int t = 0; t < T; t++) {
                const __m512i bytes = four(from + 4 * t);
                const __m512i pairs = _mm512_maddubs_epi16(sizes, _mm512_mask_sub_epi8(bytes, negative, zeros, bytes));
                whole[t] = added32(whole[t], _mm512_madd_epi16(pairs, ones));
            }
        }
        add_group<T>(whole, strip.scales + g * TILE, outer, sums);
    }
}

constexpr int BYTES_BESIDE = 1, ROWS_BESIDE = 1;  // see vnni.inc
constexpr bool UNPACKS = true;  // int4 to bytes, where many rows meet them

// 64 bytes of int4 as they meet x: sixteen rows with four inputs, then with the next four.
inline void unpack_int4(const uint8_t* from, uint8_t* to) {
    const __m512i half = _mm512_set1_epi8(0x0f), both = _mm512_loadu_si512(from);
    _mm512_store_si512(to, _mm512_and_si512(both, half));
    _mm512_store_si512(to + 64, _mm512_and_si512(_mm512_srli_epi16(both, 4), half));
}

// A weight is stored as 0 to 15, so that a pair of products is at most 2 x 15 x 127, and the eight pairs of a group,
// 30,480, fit into 16 bits: they are widened only once a group. 8 x the sum of x, which that adds, is taken off at once:
// what a sum comes to in the end, at most 8 x 8 x 2 x 127, fits, and on its way it may go over the edge and come back.
template <int T, bool unpacked = false>
ALONE void strip_int4(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const int groups = x.padded / 32;
    const size_t step = 4 * static_cast<size_t>(x.together), pace = strip.pace;
    const int8_t* from = x.ints + x.byte(row, strip.first);
    const size_t at = x.group(row, strip.first / 32, groups);
    const int32_t* off = x.sums + at;
    const float* outer = x.scales + at;
    const __m512i half = _mm512_set1_epi8(0x0f), ones = _mm512_set1_epi16(1);
    for (int g = strip.first / 32; g < strip.last / 32; g++, off += x.together, outer += x.together) {
        __m512i whole[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) whole[t] = _mm512_set1_epi32(off[t]);
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++, ahead += pace, from += 2 * step) {
            fetch(ahead);
            __m512i low, high;
            if (unpacked) {
                low = _mm512_loadu_si512(weights), high = _mm512_loadu_si512(weights + 64);
                weights += 128;
            } else {
                const __m512i both = _mm512_loadu_si512(weights);
                low = _mm512_and_si512(both, half), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), half);
                weights += 64;
            }
#pragma GCC unroll 16
            for (int t = 0; t < T; t++) whole[t] = added16(whole[t], _mm512_maddubs_epi16(low, four(from + 4 * t)));
#pragma GCC unroll 16
            for (int t = 0; t < T; t++)
                whole[t] = added16(whole[t], _mm512_maddubs_epi16(high, four(from + step + 4 * t)));
        }
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) whole[t] = _mm512_madd_epi16(whole[t], ones);
        add_group<T>(whole, strip.scales + g * TILE, outer, sums);
    }
}

#include "bfloat16.inc"
#include "common.inc"

}  // namespace

const Kernels AVX512BW = {"avx512bw", false, ROWS, product, normalise, quantise, attend, nullptr};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
