// The reference: no instructions of any one processor. What it gives for whole numbers is what all must give.
#include "kernels.h"

#include <cmath>

namespace {

#define FMA(a, b, c) ((a) * (b) + (c))
constexpr int WIDE = 8;
#include "lanes.inc"
#include "sixteen.inc"

inline void store_bytes(int8_t* to, size_t apart, Ints x) {
    for (int i = 0; i < 8; i++) to[i / 4 * apart + i % 4] = static_cast<int8_t>(x[i]);
}

inline void fetch(const void*) {}

// What is taken off again: see Rows.
inline int32_t taken_off(Kind kind, int32_t first_two, int32_t last_two) {
    return (kind == INT4 ? -8 : -128) * (first_two + last_two);
}

constexpr int at_once(Kind) { return 4; }
constexpr int QUERIES_AT_ONCE = 4;
constexpr int BESIDE = 1, BYTES_BESIDE = 1, ROWS_BESIDE = 1;  // see avx512.inc, vnni.inc

template <int T>
void strip_int8(const Strip& strip, const Rows& x, int row, float* sums) {
    auto* weights = reinterpret_cast<const int8_t*>(strip.weights) - strip.first * TILE;
    const int groups = x.padded / 64;
    for (int t = 0; t < T; t++, sums += TILE) {
        const int8_t* from = x.ints + x.ints_stride * (row + t);
        for (int g = strip.first / 64; g < strip.last / 64; g++) {
            int32_t sum[TILE] = {};
            for (int k = g * 64; k < (g + 1) * 64; k += 4)
                for (int r = 0; r < TILE; r++)
                    for (int i = 0; i < 4; i++) sum[r] += weights[k * TILE + 4 * r + i] * from[k + i];
            const float outer = x.scales[static_cast<size_t>(groups) * (row + t) + g];
            for (int r = 0; r < TILE; r++) {
                const float scale = from_bfloat16(strip.scales[g * TILE + r]) * outer;
                sums[r] = std::fma(static_cast<float>(sum[r]), scale, sums[r]);
            }
        }
    }
}

constexpr bool UNPACKS = false;
inline void unpack_int4(const uint8_t*, uint8_t*) {}

template <int T, bool = false>
void strip_int4(const Strip& strip, const Rows& x, int row, float* sums) {
    const uint8_t* weights = strip.weights - strip.first / 2 * TILE;
    const int groups = x.padded / 32;
    for (int t = 0; t < T; t++, sums += TILE) {
        const int8_t* from = x.ints + x.ints_stride * (row + t);
        for (int g = strip.first / 32; g < strip.last / 32; g++) {
            int32_t sum[TILE] = {};
            for (int k = g * 32; k < (g + 1) * 32; k += 8)
                for (int r = 0; r < TILE; r++)
                    for (int i = 0; i < 4; i++) {
                        const uint8_t byte = weights[k / 2 * TILE + 4 * r + i];
                        sum[r] += (byte & 0x0f) * from[k + i] + (byte >> 4) * from[k + 4 + i];
                    }
            const size_t at = static_cast<size_t>(groups) * (row + t) + g;
            for (int r = 0; r < TILE; r++)
                sums[r] = std::fma(static_cast<float>(sum[r] + x.sums[at]),
                                   from_bfloat16(strip.scales[g * TILE + r]) * x.scales[at], sums[r]);
        }
    }
}

#include "bfloat16.inc"
#include "common.inc"

}  // namespace

const Kernels PLAIN = {"plain", false, 1, product, normalise, quantise, attend, nullptr};
