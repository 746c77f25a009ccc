// For ARM processors with NEON's dot product of bytes: servers since 2019, every Mac with Apple's own processor.
#if defined(__aarch64__)
#include "kernels.h"

#include <arm_neon.h>
#include <cmath>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif

namespace {

struct Halves {
    float32x4_t low, high;
};

inline float __attribute__((vector_size(32))) multiply_add(Halves a, Halves b, Halves c) {
    c.low = vfmaq_f32(c.low, a.low, b.low), c.high = vfmaq_f32(c.high, a.high, b.high);
    return __builtin_bit_cast(float __attribute__((vector_size(32))), c);
}

#define FMA(a, b, c) \
    multiply_add(__builtin_bit_cast(Halves, Floats(a)), __builtin_bit_cast(Halves, Floats(b)), __builtin_bit_cast(Halves, Floats(c)))
constexpr int WIDE = 8;
#include "lanes.inc"
#include "sixteen.inc"

inline void store_bytes(int8_t* to, size_t apart, Ints x) {  // each is within a byte; the last four lie `apart` further on
    struct Fours {
        int32x4_t low, high;
    };
    const auto fours = __builtin_bit_cast(Fours, x);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(vmovn_s32(fours.low), vmovn_s32(fours.high)));
    const int32_t words[2] = {vget_lane_s32(vreinterpret_s32_s8(bytes), 0), vget_lane_s32(vreinterpret_s32_s8(bytes), 1)};
    std::memcpy(to, words, 4);
    std::memcpy(to + apart, words + 1, 4);
}

inline void fetch(const void* from) { __builtin_prefetch(from, 0, 2); }  // into the second cache

// What is taken off again: see Rows. Both factors are signed here: only int4, stored as weight + 8, needs it.
inline int32_t taken_off(Kind kind, int32_t first_two, int32_t last_two) {
    return (kind == INT4 ? -8 : -128) * (first_two + last_two);
}

constexpr int at_once(Kind kind) { return is_quantised(kind) ? 4 : 6; }  // what 32 registers of four numbers hold
constexpr int QUERIES_AT_ONCE = 6;
constexpr int BESIDE = 1, BYTES_BESIDE = 1, ROWS_BESIDE = 1;  // see avx512.inc, vnni.inc
constexpr int PARTS = 4;  // registers for a tile's sixteen rows

// Four inputs of each row of x, the ones numbered `lane` of sixteen, with the same of a tile's sixteen rows.
template <int T, int lane>
inline void add_four(int32x4_t (&whole)[T][PARTS], const int8x16_t (&weights)[PARTS], const int8x16_t (&x)[T]) {
#pragma GCC unroll 8
    for (int t = 0; t < T; t++)
#pragma GCC unroll 4
        for (int part = 0; part < PARTS; part++)
            whole[t][part] = vdotq_laneq_s32(whole[t][part], weights[part], x[t], lane);
}

// A group's sums, each times both scales, go to what the groups before it came to.
template <int T>
inline void add_group(const int32x4_t (&whole)[T][PARTS], const uint16_t* scales, const float* outer, size_t apart, float* sums) {
#pragma GCC unroll 4
    for (int part = 0; part < PARTS; part++) {
        const float32x4_t inner = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(scales + 4 * part), 16));
#pragma GCC unroll 8
        for (int t = 0; t < T; t++) {
            float* to = sums + t * TILE + 4 * part;
            vst1q_f32(to, vfmaq_f32(vld1q_f32(to), vcvtq_f32_s32(whole[t][part]), vmulq_n_f32(inner, outer[apart * t])));
        }
    }
}

template <int T, int lane>
inline void line_int8(const uint8_t*& weights, int32x4_t (&whole)[T][PARTS], const int8x16_t (&x)[T]) {
    int8x16_t now[PARTS];
#pragma GCC unroll 4
    for (int part = 0; part < PARTS; part++) now[part] = vld1q_s8(reinterpret_cast<const int8_t*>(weights) + 16 * part);
    add_four<T, lane>(whole, now, x);
    weights += 64;
}

template <int T>
ALONE void strip_int8(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t groups = x.padded / 64, stride = x.ints_stride;
    const int8_t* from = x.ints + stride * row + strip.first;
    for (int g = strip.first / 64; g < strip.last / 64; g++, from += 64) {
        int32x4_t whole[T][PARTS] = {};
#pragma GCC unroll 4
        for (int k = 0; k < 64; k += 16, ahead += 4 * static_cast<ptrdiff_t>(strip.pace)) {
            for (int line = 0; line < 4; line++) fetch(ahead + static_cast<ptrdiff_t>(strip.pace) * line);
            int8x16_t sixteen[T];
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) sixteen[t] = vld1q_s8(from + stride * t + k);
            line_int8<T, 0>(weights, whole, sixteen);
            line_int8<T, 1>(weights, whole, sixteen);
            line_int8<T, 2>(weights, whole, sixteen);
            line_int8<T, 3>(weights, whole, sixteen);
        }
        add_group<T>(whole, strip.scales + g * TILE, x.scales + groups * row + g, groups, sums);
    }
}

constexpr bool UNPACKS = false;
inline void unpack_int4(const uint8_t*, uint8_t*) {}

template <int T, int lane>
inline void line_int4(const uint8_t*& weights, int32x4_t (&whole)[T][PARTS], const int8x16_t (&x)[T]) {
    int8x16_t low[PARTS], high[PARTS];
#pragma GCC unroll 4
    for (int part = 0; part < PARTS; part++) {
        const uint8x16_t both = vld1q_u8(weights + 16 * part);
        low[part] = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(0x0f)));
        high[part] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
    }
    add_four<T, lane>(whole, low, x);
    add_four<T, lane + 1>(whole, high, x);
    weights += 64;
}

template <int T, bool = false>
ALONE void strip_int4(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t *weights = strip.weights, *ahead = strip.ahead;
    const size_t groups = x.padded / 32, stride = x.ints_stride;
    const int8_t* from = x.ints + stride * row + strip.first;
    for (int g = strip.first / 32; g < strip.last / 32; g++, from += 32) {
        int32x4_t whole[T][PARTS];
#pragma GCC unroll 8
        for (int t = 0; t < T; t++)
#pragma GCC unroll 4
            for (int part = 0; part < PARTS; part++) whole[t][part] = vdupq_n_s32(x.sums[groups * (row + t) + g]);
#pragma GCC unroll 2
        for (int k = 0; k < 32; k += 16, ahead += 2 * static_cast<ptrdiff_t>(strip.pace)) {
            fetch(ahead), fetch(ahead + strip.pace);
            int8x16_t sixteen[T];
#pragma GCC unroll 8
            for (int t = 0; t < T; t++) sixteen[t] = vld1q_s8(from + stride * t + k);
            line_int4<T, 0>(weights, whole, sixteen);
            line_int4<T, 2>(weights, whole, sixteen);
        }
        add_group<T>(whole, strip.scales + g * TILE, x.scales + groups * row + g, groups, sums);
    }
}

#include "bfloat16.inc"
#include "common.inc"

}  // namespace

const Kernels NEON = {"neon", false, 1, product, normalise, quantise, attend, nullptr};

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
