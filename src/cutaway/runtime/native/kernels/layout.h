// How a matrix lies in memory: tiles of 16 rows, read from front to back as one stream.
//
//   float32    for each input: 16 floats, one a row
//   bfloat16   for each pair of inputs: 16 rows x 2 numbers
//   int8       the scales of the tile (bfloat16, 16 for each group of 64 inputs), then for each 4 inputs: 16 rows x 4 bytes
//   int4       the same with groups of 32; a byte holds an input in its low half and the one 4 further on in its high half,
//              each as weight + 8
//
// Four consecutive inputs of sixteen rows are the operand of AVX-512's dot product, and of two of AVX2's: a sum is never
// taken across a register. The layout is the same on every machine, so that a stored file serves them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

enum Kind : int32_t { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2, INT4 = 3 };

constexpr int TILE = 16;  // rows

inline size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

constexpr int group_of(Kind kind) { return kind == INT8 ? 64 : kind == INT4 ? 32 : kind == BFLOAT16 ? 2 : 1; }

constexpr bool is_quantised(Kind kind) { return kind == INT8 || kind == INT4; }

struct Matrix {
    Kind kind;
    int rows, inputs;
    const uint8_t* data;

    int tiles() const { return static_cast<int>(up(rows, TILE) / TILE); }
    int padded() const { return static_cast<int>(up(inputs, group_of(kind))); }
    int groups() const { return padded() / group_of(kind); }
    size_t scale_bytes() const { return is_quantised(kind) ? up(static_cast<size_t>(groups()) * TILE * 2, 64) : 0; }
    size_t weight_bytes() const {
        size_t each = static_cast<size_t>(padded()) * TILE;
        return kind == FLOAT32 ? each * 4 : kind == BFLOAT16 ? each * 2 : kind == INT8 ? each : each / 2;
    }
    size_t tile_bytes() const { return scale_bytes() + up(weight_bytes(), 64); }
    size_t bytes() const { return tile_bytes() * tiles(); }
    const uint8_t* tile(int number) const { return data + tile_bytes() * number; }
};

inline float from_bfloat16(uint16_t bits) {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
}

inline uint16_t to_bfloat16(float value) {  // to the nearest, ties to even; never called with NaN
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    return static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}
