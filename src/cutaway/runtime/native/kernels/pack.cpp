#include "pack.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

uint16_t bfloat16_at_least(float value) {  // a scale rounded down would push the largest weight out of range
    uint16_t bits = to_bfloat16(value);
    return from_bfloat16(bits) < value ? bits + 1 : bits;
}

// Ties to even, for |value| < 2^22, in two additions: a call of nearbyint would take most of the time here.
inline float nearest(float value) {
    const float shift = 12582912.0f;
    return (value + shift) - shift;
}

uint16_t quantise_int8(const float* weights, int count, int8_t* into) {
    float largest = 0;
    for (int i = 0; i < count; i++) largest = std::max(largest, std::fabs(weights[i]));
    uint16_t bits = bfloat16_at_least(largest / 127);
    float scale = from_bfloat16(bits);
    for (int i = 0; i < count; i++) {
        float value = scale > 1e-30f ? nearest(weights[i] / scale) : 0;
        into[i] = static_cast<int8_t>(std::clamp(value, -127.0f, 127.0f));
    }
    return scale > 1e-30f ? bits : 0;
}

// Sixteen steps from -8 to 7. The weight of the largest magnitude sits near -8 (the scale may be negative); of several
// scales around that, the one with the least squared error is taken, each with the multiple that fits its steps best.
uint16_t scale_int4(const float* weights, int count) {
    float extreme = 0;
    for (int i = 0; i < count; i++)
        if (std::fabs(weights[i]) > std::fabs(extreme)) extreme = weights[i];
    if (std::fabs(extreme) < 1e-30f) return 0;
    float padded[32] = {};
    std::copy_n(weights, count, padded);
    float best_gain = -1, best = 0;
    for (int candidate = -6; candidate <= 6; candidate++) {
        float inverse = -(8.0f + 0.2f * candidate) / extreme;
        float alongs[8] = {}, lengths[8] = {};  // eight sums side by side, for the compiler's vectors
        for (int i = 0; i < 32; i += 8)
            for (int lane = 0; lane < 8; lane++) {
                float step = nearest(padded[i + lane] * inverse);
                step = step < -8 ? -8 : step;
                step = step > 7 ? 7 : step;
                alongs[lane] += padded[i + lane] * step;
                lengths[lane] += step * step;
            }
        float along = 0, length = 0;
        for (int lane = 0; lane < 8; lane++) along += alongs[lane], length += lengths[lane];
        if (length == 0) continue;
        float gain = along * along / length;  // by so much the squared error is less than the sum of squares
        if (gain > best_gain) best_gain = gain, best = along / length;
    }
    uint16_t bits = to_bfloat16(best);
    return std::fabs(from_bfloat16(bits)) < 1e-30f ? 0 : bits;
}

inline int8_t step_int4(float weight, float scale) {
    return scale == 0 ? 0 : static_cast<int8_t>(std::clamp(nearest(weight / scale), -8.0f, 7.0f));
}

uint16_t quantise_int4(const float* weights, int count, int8_t* into) {
    uint16_t bits = scale_int4(weights, count);
    float scale = from_bfloat16(bits);
    for (int i = 0; i < count; i++) into[i] = step_int4(weights[i], scale);
    return bits;
}

size_t place(const Matrix& matrix, int row, int input) {  // of a number, counted in numbers from the tile's weights on
    int per = matrix.kind == FLOAT32 ? 1 : matrix.kind == BFLOAT16 ? 2 : 4;
    return (static_cast<size_t>(input / per) * TILE + row) * per + input % per;
}

void put_int4(const Matrix& matrix, uint8_t* body, int row, int input, int8_t step) {
    uint8_t& byte = body[place(matrix, row, input / 8 * 4 + input % 4)];
    uint8_t half = static_cast<uint8_t>(step + 8);
    byte = input / 4 % 2 ? (byte & 0x0f) | half << 4 : (byte & 0xf0) | half;
}

}  // namespace

void pack_tiles(const Matrix& matrix, uint8_t* into, const float* weights, int first_tile, int last_tile) {
    const int group = group_of(matrix.kind);
    for (int number = first_tile; number < last_tile; number++) {
        uint8_t* tile = into + matrix.tile_bytes() * number;
        std::memset(tile, 0, matrix.tile_bytes());
        auto* scales = reinterpret_cast<uint16_t*>(tile);
        uint8_t* body = tile + matrix.scale_bytes();
        if (matrix.kind == INT4) std::memset(body, 0x88, matrix.weight_bytes());  // zero is stored as 8
        for (int r = 0; r < TILE && number * TILE + r < matrix.rows; r++) {
            const float* row = weights + static_cast<size_t>((number - first_tile) * TILE + r) * matrix.inputs;
            for (int first = 0, g = 0; first < matrix.inputs; first += group, g++) {
                int count = std::min(group, matrix.inputs - first);
                int8_t steps[64];
                if (matrix.kind == INT8) scales[g * TILE + r] = quantise_int8(row + first, count, steps);
                if (matrix.kind == INT4) scales[g * TILE + r] = quantise_int4(row + first, count, steps);
                for (int i = 0; i < count; i++) {
                    int input = first + i;
                    if (matrix.kind == FLOAT32) {
                        reinterpret_cast<float*>(body)[place(matrix, r, input)] = row[input];
                    } else if (matrix.kind == BFLOAT16) {
                        reinterpret_cast<uint16_t*>(body)[place(matrix, r, input)] = to_bfloat16(row[input]);
                    } else if (matrix.kind == INT8) {
                        body[place(matrix, r, input)] = static_cast<uint8_t>(steps[i]);
                    } else {
                        put_int4(matrix, body, r, input, steps[i]);
                    }
                }
            }
        }
    }
}

void pack_tile_int4(const Matrix& matrix, uint8_t* into, const float* weights, int number, const float* factor) {
    constexpr int GROUP = group_of(INT4);
    const int inputs = matrix.inputs, rows = std::min(TILE, matrix.rows - number * TILE);
    uint8_t* tile = into + matrix.tile_bytes() * number;
    std::memset(tile, 0, matrix.tile_bytes());
    auto* scales = reinterpret_cast<uint16_t*>(tile);
    uint8_t* body = tile + matrix.scale_bytes();
    std::memset(body, 0x88, matrix.weight_bytes());
    std::vector<float> left(static_cast<size_t>(inputs) * TILE);  // what is to be rounded yet: input by input, 16 rows each
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < inputs; i++) left[static_cast<size_t>(i) * TILE + r] = weights[static_cast<size_t>(r) * inputs + i];
    for (int first = 0, g = 0; first < inputs; first += GROUP, g++) {
        const int count = std::min(GROUP, inputs - first);
        float scale[TILE] = {}, errors[GROUP][TILE] = {};
        for (int r = 0; r < rows; r++) {
            float group[GROUP];
            for (int i = 0; i < count; i++) group[i] = left[static_cast<size_t>(first + i) * TILE + r];
            scales[g * TILE + r] = scale_int4(group, count);
            scale[r] = from_bfloat16(scales[g * TILE + r]);
        }
        for (int i = 0; i < count; i++) {
            const float* row = factor + static_cast<size_t>(first + i) * inputs;
            const float* now = &left[static_cast<size_t>(first + i) * TILE];
            for (int r = 0; r < rows; r++) {
                int8_t step = step_int4(now[r], scale[r]);
                put_int4(matrix, body, r, first + i, step);
                errors[i][r] = (now[r] - scale[r] * static_cast<float>(step)) / row[first + i];
            }
            for (int j = i + 1; j < count; j++)
                for (int r = 0; r < TILE; r++) left[static_cast<size_t>(first + j) * TILE + r] -= errors[i][r] * row[first + j];
        }
        for (int j = first + count; j < inputs; j++) {
            float passed[TILE] = {};
            for (int i = 0; i < count; i++) {
                const float share = factor[static_cast<size_t>(first + i) * inputs + j];
                for (int r = 0; r < TILE; r++) passed[r] += errors[i][r] * share;
            }
            for (int r = 0; r < TILE; r++) left[static_cast<size_t>(j) * TILE + r] -= passed[r];
        }
    }
}

void unpack_row(const Matrix& matrix, int row, float* into) {
    const uint8_t* tile = matrix.tile(row / TILE);
    auto* scales = reinterpret_cast<const uint16_t*>(tile);
    const uint8_t* body = tile + matrix.scale_bytes();
    const int r = row % TILE, group = group_of(matrix.kind);
    for (int input = 0; input < matrix.inputs; input++) {
        if (matrix.kind == FLOAT32) {
            into[input] = reinterpret_cast<const float*>(body)[place(matrix, r, input)];
        } else if (matrix.kind == BFLOAT16) {
            into[input] = from_bfloat16(reinterpret_cast<const uint16_t*>(body)[place(matrix, r, input)]);
        } else {
            float scale = from_bfloat16(scales[input / group * TILE + r]);
            int step;
            if (matrix.kind == INT8) {
                step = static_cast<int8_t>(body[place(matrix, r, input)]);
            } else {
                uint8_t byte = body[place(matrix, r, input / 8 * 4 + input % 4)];
                step = (input / 4 % 2 ? byte >> 4 : byte & 0x0f) - 8;
            }
            into[input] = scale * static_cast<float>(step);
        }
    }
}
