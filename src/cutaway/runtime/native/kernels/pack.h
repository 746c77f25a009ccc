// Matrices into tiles and back.
#pragma once

#include "layout.h"

// Row-major floats [last - first, inputs] of the tiles' rows into those tiles of `into` (the whole matrix's memory).
void pack_tiles(const Matrix& matrix, uint8_t* into, const float* weights, int first_tile, int last_tile);

// One tile of int4 with care (GPTQ): what rounding an input's weight leaves over is passed on to the inputs not rounded yet,
// as far as they can make up for it. `factor` [inputs, inputs] is the upper Cholesky factor of the inverse of the inputs'
// second moments; `weights` are the tile's own rows.
void pack_tile_int4(const Matrix& matrix, uint8_t* into, const float* weights, int number, const float* factor);

// One row as the engine sees it: the weights after rounding.
void unpack_row(const Matrix& matrix, int row, float* into);
