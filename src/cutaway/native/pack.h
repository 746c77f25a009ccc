// Matrices into tiles and back.
#pragma once

#include "layout.h"

// Row-major floats [last - first, inputs] of the tiles' rows into those tiles of `into` (the whole matrix's memory).
void pack_tiles(const Matrix& matrix, uint8_t* into, const float* weights, int first_tile, int last_tile);

// One row as the engine sees it: the weights after rounding.
void unpack_row(const Matrix& matrix, int row, float* into);
