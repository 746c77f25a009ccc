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

constexpr int at_once(Kind) { return 12; }  // enough to hide how long a product takes, and their sums fit 32 registers

constexpr int AHEAD = 1024;  // bytes: what the processor's own prefetcher does not see at the end of a page

inline void fetch(const void* from) { _mm_prefetch(static_cast<const char*>(from), _MM_HINT_T0); }

using Sixteen = __m512;
inline Sixteen load16(const float* from) { return _mm512_loadu_ps(from); }
inline void store16(float* to, const Sixteen& x) { _mm512_storeu_ps(to, x); }
inline Sixteen times(const Sixteen& x, float y) { return _mm512_mul_ps(x, _mm512_set1_ps(y)); }
inline void add_product(Sixteen& sum, float x, const Sixteen& y) { sum = _mm512_fmadd_ps(_mm512_set1_ps(x), y, sum); }

template <int which>  // the first (0) or second (1) of each of sixteen pairs of bfloat16
inline Sixteen half16(const uint8_t* pairs) {
    const __m512i both = _mm512_loadu_si512(pairs);
    if (which == 0) return _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
    return _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000))));
}

inline __m512i four(const int8_t* from) {
    int32_t bytes;
    std::memcpy(&bytes, from, 4);
    return _mm512_set1_epi32(bytes);
}

inline __m512 scales_of(const uint16_t* from) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))), 16));
}

// One register for a sum all the way: left to itself the compiler moves it from one to another with each product.
inline __m512i added(__m512i sum, __m512i weights, __m512i x) {
    sum = _mm512_dpbusd_epi32(sum, weights, x);
    asm("" : "+v"(sum));
    return sum;
}

// vpdpbusd multiplies unsigned by signed bytes: a weight goes in as weight + 128 (its top bit turned), and 128 x the sum
// of x is taken off again.
template <int T>
ALONE void strip_int8(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t groups = x.padded / 64, stride = x.whole_stride;
    const int8_t* from = x.whole + stride * row + strip.first;
    const __m512i top = _mm512_set1_epi8(static_cast<char>(0x80));
    __m512 total[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) total[t] = _mm512_load_ps(sums + t * TILE);
    for (int g = strip.first / 64; g < strip.last / 64; g++, from += 64) {
        __m512i whole[T], other[T];  // two sums each where there are few: a product takes five steps
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) {
            whole[t] = _mm512_set1_epi32(-128 * x.sums[groups * (row + t) + g]);
            other[t] = _mm512_setzero_si512();
        }
        for (int k = 0; k < 64; k += 8)
#pragma GCC unroll 2
            for (int part = 0; part < 2; part++, weights += 64, ahead += strip.pace) {
                fetch(ahead);
                const __m512i sixteen = _mm512_xor_si512(_mm512_loadu_si512(weights), top);
#pragma GCC unroll 16
                for (int t = 0; t < T; t++) {
                    __m512i& sum = T < 4 && part ? other[t] : whole[t];
                    sum = added(sum, sixteen, four(from + stride * t + k + 4 * part));
                }
            }
        const __m512 inner = scales_of(strip.scales + g * TILE);
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) {
            const __m512i all = T < 4 ? _mm512_add_epi32(whole[t], other[t]) : whole[t];
            const __m512 scale = _mm512_mul_ps(inner, _mm512_set1_ps(x.scales[groups * (row + t) + g]));
            total[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(all), scale, total[t]);
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) _mm512_store_ps(sums + t * TILE, total[t]);
}

template <int T>
ALONE void strip_int4(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t groups = x.padded / 32, stride = x.whole_stride;
    const int8_t* from = x.whole + stride * row + strip.first;
    const __m512i half = _mm512_set1_epi8(0x0f);
    __m512 total[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) total[t] = _mm512_load_ps(sums + t * TILE);
    for (int g = strip.first / 32; g < strip.last / 32; g++, from += 32) {
        __m512i whole[T], other[T];
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) {
            whole[t] = _mm512_set1_epi32(-8 * x.sums[groups * (row + t) + g]);
            other[t] = _mm512_setzero_si512();
        }
        for (int k = 0; k < 32; k += 8, weights += 64, ahead += strip.pace) {
            fetch(ahead);
            const __m512i both = _mm512_loadu_si512(weights);
            const __m512i low = _mm512_and_si512(both, half), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), half);
#pragma GCC unroll 16
            for (int t = 0; t < T; t++) {
                const int8_t* bytes = from + stride * t + k;
                __m512i& second = T < 4 ? other[t] : whole[t];
                whole[t] = added(whole[t], low, four(bytes));
                second = added(second, high, four(bytes + 4));
            }
        }
        const __m512 inner = scales_of(strip.scales + g * TILE);
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) {
            const __m512i all = T < 4 ? _mm512_add_epi32(whole[t], other[t]) : whole[t];
            const __m512 scale = _mm512_mul_ps(inner, _mm512_set1_ps(x.scales[groups * (row + t) + g]));
            total[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(all), scale, total[t]);
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) _mm512_store_ps(sums + t * TILE, total[t]);
}

#include "common.inc"

}  // namespace

const Kernels AVX512 = {"avx512", product, normalise, quantise, look};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
