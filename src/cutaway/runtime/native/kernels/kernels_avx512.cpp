// For processors with AVX-512 and its dot product of bytes (VNNI).
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

#include "avx512.inc"
#include "vnni.inc"
#include "bfloat16.inc"
#include "common.inc"

}  // namespace

const Kernels AVX512 = {"avx512", false, ROWS, product, normalise, quantise, attend, nullptr};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
