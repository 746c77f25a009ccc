// AVX-512 in software, by SIMDe, for processors that have none (see test_software.py). What SIMDe 0.7 lacks is here.
#pragma once
#define CUTAWAY_SOFTWARE  // no instruction may be named outright
#include <simde/x86/avx512.h>

static inline simde__m512 simde_mm512_cvtepi32_ps(simde__m512i x) {
    int32_t from[16];
    float to[16];
    simde_mm512_storeu_si512(from, x);
    for (int i = 0; i < 16; i++) to[i] = static_cast<float>(from[i]);
    return simde_mm512_loadu_ps(to);
}

static inline simde__m512i simde_mm512_cvtepu16_epi32(__m256i x) {
    uint16_t from[16];
    int32_t to[16];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(from), x);
    for (int i = 0; i < 16; i++) to[i] = from[i];
    return simde_mm512_loadu_si512(to);
}

static inline __m128i simde_mm512_cvtepi32_epi8(simde__m512i x) {
    int32_t from[16];
    int8_t to[16];
    simde_mm512_storeu_si512(from, x);
    for (int i = 0; i < 16; i++) to[i] = static_cast<int8_t>(from[i]);
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(to));
}
