// The reference: no instructions of any one processor. What it gives for whole numbers is what all must give.
#include "kernels.h"

#include <cmath>

namespace {

#define FMA(a, b, c) ((a) * (b) + (c))
#include "lanes.inc"

constexpr int at_once(Kind) { return 4; }

template <int T>
void tile_float32(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* weights = reinterpret_cast<const float*>(tile);
    for (int t = 0; t < T; t++) {
        const float* from = x.real + x.stride * (row + t);
        for (int r = 0; r < TILE; r++) sums[t][r] = 0;
        for (int k = 0; k < matrix.inputs; k++)
            for (int r = 0; r < TILE; r++) sums[t][r] += weights[k * TILE + r] * from[k];
    }
}

template <int T>
void tile_bfloat16(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* weights = reinterpret_cast<const uint16_t*>(tile);
    for (int t = 0; t < T; t++) {
        const float* from = x.real + x.stride * (row + t);
        for (int r = 0; r < TILE; r++) sums[t][r] = 0;
        for (int k = 0; k < matrix.padded(); k += 2)
            for (int r = 0; r < TILE; r++) {
                sums[t][r] += from_bfloat16(weights[k * TILE + 2 * r]) * from[k];
                sums[t][r] += from_bfloat16(weights[k * TILE + 2 * r + 1]) * from[k + 1];
            }
    }
}

template <int T>
void tile_int8(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* scales = reinterpret_cast<const uint16_t*>(tile);
    auto* weights = reinterpret_cast<const int8_t*>(tile + matrix.scale_bytes());
    const int groups = matrix.groups();
    for (int t = 0; t < T; t++) {
        const int8_t* from = x.whole + static_cast<size_t>(x.padded) * (row + t);
        for (int r = 0; r < TILE; r++) sums[t][r] = 0;
        for (int g = 0; g < groups; g++) {
            int32_t whole[TILE] = {};
            for (int k = g * 64; k < (g + 1) * 64; k += 4)
                for (int r = 0; r < TILE; r++)
                    for (int i = 0; i < 4; i++) whole[r] += weights[k * TILE + 4 * r + i] * from[k + i];
            const float scale = x.scales[static_cast<size_t>(groups) * (row + t) + g];
            for (int r = 0; r < TILE; r++)
                sums[t][r] = std::fma(static_cast<float>(whole[r]), from_bfloat16(scales[g * TILE + r]) * scale, sums[t][r]);
        }
    }
}

template <int T>
void tile_int4(const Matrix& matrix, const uint8_t* tile, const Rows& x, int row, float sums[T][TILE]) {
    auto* scales = reinterpret_cast<const uint16_t*>(tile);
    const uint8_t* weights = tile + matrix.scale_bytes();
    const int groups = matrix.groups();
    for (int t = 0; t < T; t++) {
        const int8_t* from = x.whole + static_cast<size_t>(x.padded) * (row + t);
        for (int r = 0; r < TILE; r++) sums[t][r] = 0;
        for (int g = 0; g < groups; g++) {
            int32_t whole[TILE] = {};
            for (int k = g * 32; k < (g + 1) * 32; k += 8)
                for (int r = 0; r < TILE; r++)
                    for (int i = 0; i < 4; i++) {
                        const uint8_t byte = weights[k / 2 * TILE + 4 * r + i];
                        whole[r] += (byte & 0x0f) * from[k + i] + (byte >> 4) * from[k + 4 + i];
                    }
            const size_t at = static_cast<size_t>(groups) * (row + t) + g;
            for (int r = 0; r < TILE; r++)
                sums[t][r] = std::fma(static_cast<float>(whole[r] - 8 * x.sums[at]),
                                      from_bfloat16(scales[g * TILE + r]) * x.scales[at], sums[t][r]);
        }
    }
}

#include "common.inc"

}  // namespace

const Kernels PLAIN = {"plain", product, normalise, quantise, look};
