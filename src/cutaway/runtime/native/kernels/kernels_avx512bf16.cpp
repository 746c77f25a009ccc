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

constexpr bool WIDENS = false;

template <int T>
ALONE void strip_bfloat16(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t stride = x.ints_stride;
    const int8_t* from = x.ints + stride * row + sizeof(uint16_t) * strip.first;
    __m512 total[T];
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) total[t] = _mm512_load_ps(sums + t * TILE);
    for (int k = strip.first; k < strip.last; k += 2, weights += 64, from += 4, ahead += strip.pace) {
        fetch(ahead);
        const __m512i sixteen = _mm512_loadu_si512(weights);
#pragma GCC unroll 16
        for (int t = 0; t < T; t++)
            total[t] = _mm512_dpbf16_ps(total[t], (__m512bh)sixteen, (__m512bh)four(from + stride * t));
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; t++) _mm512_store_ps(sums + t * TILE, total[t]);
}

#include "common.inc"

}  // namespace

const Kernels AVX512BF16 = {"avx512bf16", true, product, normalise, quantise, attend};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
