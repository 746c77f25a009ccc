// For processors with AVX-512 and dot products of bytes (VNNI) and of bfloat16, which want the activations rounded too.
#if defined(__x86_64__)
#include "kernels.h"

#include <cmath>
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni,avx512bf16")
#endif

namespace {

#include "avx512.inc"
#include "vnni.inc"

constexpr bool WIDENS = false;

inline __m512 added(__m512 sum, __m512i weights, const int8_t* x) {
#if !defined(CUTAWAY_SOFTWARE)
    struct Four { int8_t bytes[4]; };
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(weights), "m"(*reinterpret_cast<const Four*>(x)));
    return sum;
#else
    return _mm512_dpbf16_ps(sum, (__m512bh)weights, (__m512bh)four(x));
#endif
}

inline __m512 added(__m512 sum, __m512i weights, __m512i x) {
#if !defined(CUTAWAY_SOFTWARE)
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(weights), "v"(x));
    return sum;
#else
    return _mm512_dpbf16_ps(sum, (__m512bh)weights, (__m512bh)x);
#endif
}

template <int T>
ALONE void strip_bfloat16(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t step = 4 * static_cast<size_t>(x.together), pace = strip.pace;
    const int8_t* from = x.ints + x.byte(row, 2 * strip.first);
    __m512 total[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) total[t] = _mm512_load_ps(sums + t * TILE);
    for (int k = strip.first; k < strip.last; k += 2, weights += 64, from += step, ahead += pace) {
        fetch(ahead);
        const __m512i sixteen = _mm512_loadu_si512(weights);
#pragma GCC unroll 16
        for (int t = 0; t < T; t++) total[t] = added(total[t], sixteen, from + 4 * t);
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) _mm512_store_ps(sums + t * TILE, total[t]);
}

#include "common.inc"
#include "attention_bfloat16.inc"

}  // namespace

const Kernels AVX512BF16 = {"avx512bf16", true, ROWS, product, normalise, quantise, attend, attend_rounded};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
