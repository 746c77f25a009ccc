// For processors with AVX-512 and its dot product of bytes (VNNI): a tile's sixteen rows are one register.
#if defined(__x86_64__)
#include "kernels.h"

#include <cmath>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")
#endif

namespace {

#define FMA(a, b, c) static_cast<Floats>(_mm256_fmadd_ps(a, b, c))
#include "lanes.inc"

constexpr int at_once(Kind) { return 6; }

inline void fetch(const void* from) { _mm_prefetch(static_cast<const char*>(from) + 1024, _MM_HINT_T0); }

inline __m512i four(const int8_t* from) {
    int32_t bytes;
    std::memcpy(&bytes, from, 4);
    return _mm512_set1_epi32(bytes);
}

inline __m512 scales_of(const uint16_t* from) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))), 16));
}

template <int T>
void tile_float32(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* weights = reinterpret_cast<const float*>(tile);
    const float* from = x.real + x.stride * row;
    __m512 total[T] = {};
    for (int k = 0; k < matrix.inputs; k++, weights += TILE) {
        fetch(weights);
        __m512 sixteen = _mm512_loadu_ps(weights);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++)
            total[t] = _mm512_fmadd_ps(_mm512_set1_ps(from[x.stride * t + k]), sixteen, total[t]);
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) _mm512_storeu_ps(sums[t], total[t]);
}

template <int T>
void tile_bfloat16(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    const float* from = x.real + x.stride * row;
    const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000));
    __m512 total[T] = {};
    for (int k = 0; k < matrix.padded(); k += 2, tile += 64) {
        fetch(tile);
        __m512i pairs = _mm512_loadu_si512(tile);
        __m512 first = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
        __m512 second = _mm512_castsi512_ps(_mm512_and_si512(pairs, upper));
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            total[t] = _mm512_fmadd_ps(_mm512_set1_ps(from[x.stride * t + k]), first, total[t]);
            total[t] = _mm512_fmadd_ps(_mm512_set1_ps(from[x.stride * t + k + 1]), second, total[t]);
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) _mm512_storeu_ps(sums[t], total[t]);
}

// vpdpbusd multiplies unsigned by signed bytes: a weight goes in as weight + 128 (its top bit turned), and 128 x the sum
// of x is taken off again.
template <int T>
void tile_int8(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* scales = reinterpret_cast<const uint16_t*>(tile);
    const uint8_t* weights = tile + matrix.scale_bytes();
    const int groups = matrix.groups();
    const int8_t* from = x.whole + static_cast<size_t>(x.padded) * row;
    const size_t first = static_cast<size_t>(groups) * row;
    const __m512i top = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512 total[T] = {};
    for (int g = 0; g < groups; g++, from += 64, scales += TILE) {
        __m512i whole[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) whole[t] = _mm512_set1_epi32(-128 * x.sums[first + static_cast<size_t>(groups) * t + g]);
        for (int k = 0; k < 64; k += 4, weights += 64) {
            if (T == 1) fetch(weights);
            __m512i sixteen = _mm512_xor_si512(_mm512_loadu_si512(weights), top);
#pragma GCC unroll 8
            for (int t = 0; t < T; t++)
                whole[t] = _mm512_dpbusd_epi32(whole[t], sixteen, four(from + static_cast<size_t>(x.padded) * t + k));
        }
        __m512 inner = scales_of(scales);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            __m512 scale = _mm512_mul_ps(inner, _mm512_set1_ps(x.scales[first + static_cast<size_t>(groups) * t + g]));
            total[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole[t]), scale, total[t]);
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) _mm512_storeu_ps(sums[t], total[t]);
}

template <int T>
void tile_int4(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* scales = reinterpret_cast<const uint16_t*>(tile);
    const uint8_t* weights = tile + matrix.scale_bytes();
    const int groups = matrix.groups();
    const int8_t* from = x.whole + static_cast<size_t>(x.padded) * row;
    const size_t first = static_cast<size_t>(groups) * row;
    const __m512i half = _mm512_set1_epi8(0x0f);
    __m512 total[T] = {};
    for (int g = 0; g < groups; g++, from += 32, scales += TILE) {
        __m512i whole[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) whole[t] = _mm512_set1_epi32(-8 * x.sums[first + static_cast<size_t>(groups) * t + g]);
        for (int k = 0; k < 32; k += 8, weights += 64) {
            if (T == 1) fetch(weights);
            __m512i both = _mm512_loadu_si512(weights);
            __m512i low = _mm512_and_si512(both, half), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), half);
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) {
                const int8_t* bytes = from + static_cast<size_t>(x.padded) * t + k;
                whole[t] = _mm512_dpbusd_epi32(whole[t], low, four(bytes));
                whole[t] = _mm512_dpbusd_epi32(whole[t], high, four(bytes + 4));
            }
        }
        __m512 inner = scales_of(scales);
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            __m512 scale = _mm512_mul_ps(inner, _mm512_set1_ps(x.scales[first + static_cast<size_t>(groups) * t + g]));
            total[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole[t]), scale, total[t]);
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; t++) _mm512_storeu_ps(sums[t], total[t]);
}

#include "common.inc"

}  // namespace

const Kernels AVX512 = {"avx512", product, normalise, quantise, look};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
