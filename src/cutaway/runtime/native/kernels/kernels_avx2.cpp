// For processors with AVX2 and FMA: those of the last ten years that have no AVX-512.
#if defined(__x86_64__)
#include "kernels.h"

#include <cmath>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

namespace {

#define FMA(a, b, c) static_cast<Floats>(_mm256_fmadd_ps(a, b, c))
constexpr int WIDE = 8;
#include "lanes.inc"
#include "bytes.inc"
#include "sixteen.inc"

constexpr int at_once(Kind kind) { return is_quantised(kind) ? 4 : 6; }  // what 16 registers hold
constexpr int QUERIES_AT_ONCE = 6;
constexpr int BESIDE = 1, BYTES_BESIDE = 1, ROWS_BESIDE = 1;  // see avx512.inc, vnni.inc

// Into the second cache, which holds more of what is under way than the first.
inline void fetch(const void* from) { _mm_prefetch(static_cast<const char*>(from), _MM_HINT_T1); }

// What is taken off again: see Rows. Here as two numbers of 16 bits, for the first two of each four inputs and the others.
inline int32_t taken_off(Kind, int32_t first_two, int32_t last_two) {
    return static_cast<int32_t>((static_cast<uint32_t>(-8 * first_two) & 0xffff) | static_cast<uint32_t>(-8 * last_two) << 16);
}

inline __m256i four(const int8_t* from) {
    int32_t bytes;
    std::memcpy(&bytes, from, 4);
    return _mm256_set1_epi32(bytes);
}

inline __m256 scales_of(const uint16_t* from) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
}

inline __m256i bytes_at(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

// Adds in this order: left to itself the compiler makes all the products first and keeps them on the stack.
inline __m256i added32(__m256i sum, __m256i more) {
    sum = _mm256_add_epi32(sum, more);
    asm("" : "+x"(sum));
    return sum;
}

inline __m256i added16(__m256i sum, __m256i more) {
    sum = _mm256_add_epi16(sum, more);
    asm("" : "+x"(sum));
    return sum;
}

// vpmaddubsw multiplies unsigned by signed bytes and adds two neighbours: |w| x (x with w's sign) is at most
// 2 x 127 x 127 = 32,258, which 16 bits hold. (Widening the weights to 16 bits instead was no faster.)
inline __m256i dot(__m256i sum, __m256i weights, __m256i magnitudes, __m256i x) {
    __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(x, weights));
    return added32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

template <int T>
ALONE void strip_int8(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t groups = x.padded / 64, stride = x.ints_stride;
    const int8_t* from = x.ints + stride * row + strip.first;
    const float* outer = x.scales + groups * row;
    __m256 low[T], high[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) low[t] = _mm256_load_ps(sums + t * TILE), high[t] = _mm256_load_ps(sums + t * TILE + 8);
    for (int g = strip.first / 64; g < strip.last / 64; g++, from += 64) {
        __m256i left[T] = {}, right[T] = {};
#pragma GCC unroll 16
        for (int k = 0; k < 64; k += 4, weights += 64, ahead += strip.pace) {
            fetch(ahead);
            __m256i w0 = bytes_at(weights), w1 = bytes_at(weights + 32);
            __m256i size0 = _mm256_abs_epi8(w0), size1 = _mm256_abs_epi8(w1);
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) {
                __m256i bytes = four(from + stride * t + k);
                left[t] = dot(left[t], w0, size0, bytes);
                right[t] = dot(right[t], w1, size1, bytes);
            }
        }
        __m256 scale0 = scales_of(strip.scales + g * TILE), scale1 = scales_of(strip.scales + g * TILE + 8);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            __m256 scale = _mm256_broadcast_ss(outer + groups * t + g);
            low[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(left[t]), _mm256_mul_ps(scale0, scale), low[t]);
            high[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(right[t]), _mm256_mul_ps(scale1, scale), high[t]);
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) _mm256_store_ps(sums + t * TILE, low[t]), _mm256_store_ps(sums + t * TILE + 8, high[t]);
}

constexpr bool UNPACKS = true;  // int4 to bytes, where many rows meet them

// The two halves of 64 bytes of int4 as they meet x: rows 0 to 7 and 8 to 15 with four inputs, then with the next four.
inline void unpack_int4(const uint8_t* from, uint8_t* to) {
    const __m256i half = _mm256_set1_epi8(0x0f);
    for (int part = 0; part < 2; part++) {
        const __m256i both = bytes_at(from + 32 * part);
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + 32 * part), _mm256_and_si256(both, half));
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + 64 + 32 * part), _mm256_and_si256(_mm256_srli_epi16(both, 4), half));
    }
}

// A weight is stored as 0 to 15, so that a pair of products is at most 2 x 15 x 127, and the eight pairs of a group,
// 30,480, fit into 16 bits: they are widened only once a group. 8 x the sum of x, which that adds, is taken off at once:
// what a sum comes to in the end, at most 8 x 8 x 2 x 127, fits, and on its way it may go over the edge and come back.
template <int T, bool unpacked = false>
ALONE void strip_int4(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t groups = x.padded / 32, stride = x.ints_stride;
    const int8_t* from = x.ints + stride * row + strip.first;
    const __m256i half = _mm256_set1_epi8(0x0f), ones = _mm256_set1_epi16(1);
    __m256 low[T], high[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) low[t] = _mm256_load_ps(sums + t * TILE), high[t] = _mm256_load_ps(sums + t * TILE + 8);
    for (int g = strip.first / 32; g < strip.last / 32; g++, from += 32) {
        __m256i left[T], right[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) left[t] = right[t] = _mm256_set1_epi32(x.sums[groups * (row + t) + g]);
#pragma GCC unroll 4
        for (int k = 0; k < 32; k += 8, ahead += strip.pace) {
            fetch(ahead);
            __m256i low0, low1, high0, high1;
            if (unpacked) {
                low0 = bytes_at(weights), low1 = bytes_at(weights + 32);
                high0 = bytes_at(weights + 64), high1 = bytes_at(weights + 96);
                weights += 128;
            } else {
                const __m256i w0 = bytes_at(weights), w1 = bytes_at(weights + 32);
                low0 = _mm256_and_si256(w0, half), high0 = _mm256_and_si256(_mm256_srli_epi16(w0, 4), half);
                low1 = _mm256_and_si256(w1, half), high1 = _mm256_and_si256(_mm256_srli_epi16(w1, 4), half);
                weights += 64;
            }
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) {
                __m256i one = four(from + stride * t + k), other = four(from + stride * t + k + 4);
                left[t] = added16(left[t], _mm256_maddubs_epi16(low0, one));
                right[t] = added16(right[t], _mm256_maddubs_epi16(low1, one));
                left[t] = added16(left[t], _mm256_maddubs_epi16(high0, other));
                right[t] = added16(right[t], _mm256_maddubs_epi16(high1, other));
            }
        }
        __m256 scale0 = scales_of(strip.scales + g * TILE), scale1 = scales_of(strip.scales + g * TILE + 8);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            __m256 scale = _mm256_broadcast_ss(x.scales + groups * (row + t) + g);
            __m256i whole0 = _mm256_madd_epi16(left[t], ones), whole1 = _mm256_madd_epi16(right[t], ones);
            low[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole0), _mm256_mul_ps(scale0, scale), low[t]);
            high[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole1), _mm256_mul_ps(scale1, scale), high[t]);
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) _mm256_store_ps(sums + t * TILE, low[t]), _mm256_store_ps(sums + t * TILE + 8, high[t]);
}

#include "bfloat16.inc"
#include "common.inc"

}  // namespace

const Kernels AVX2 = {"avx2", false, 1, product, normalise, quantise, attend, nullptr};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
