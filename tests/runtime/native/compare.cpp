// The kernels of one name against the plain ones: for processors that Python's tests do not run on (test_arm.py).
//
//     compare NAME
//
// Products of int8 and int4 must be the same to the last bit, those of floats the same but for their last digits; rows read
// together must be what they are alone.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

extern "C" {
const char* cutaway_kernels(const char*);
uint64_t cutaway_matrix_bytes(int32_t, int32_t, int32_t);
int32_t cutaway_pack(int32_t, int32_t, int32_t, const float*, uint8_t*, int32_t, const float*);
int32_t cutaway_product(const char*, int32_t, int32_t, int32_t, const uint8_t*, int32_t, const float*, float*);
}

static int compared = 0;

static bool same(const char* name, int kind, int rows, int inputs, int count) {
    std::mt19937 dice(rows + 31 * inputs + 7 * count);
    std::normal_distribution<float> normal;
    std::vector<float> weights(static_cast<size_t>(rows) * inputs), x(static_cast<size_t>(count) * inputs);
    for (float& one : weights) one = normal(dice);
    for (float& one : x) one = normal(dice);
    std::vector<uint8_t> room(cutaway_matrix_bytes(kind, rows, inputs) + 64);
    uint8_t* packed = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
    cutaway_pack(kind, rows, inputs, weights.data(), packed, 1, nullptr);
    std::vector<float> plain(static_cast<size_t>(count) * rows), other(plain.size(), NAN), alone(rows);
    if (cutaway_product("plain", kind, rows, inputs, packed, count, x.data(), plain.data())) return false;
    if (cutaway_product(name, kind, rows, inputs, packed, count, x.data(), other.data())) return false;
    for (size_t i = 0; i < plain.size(); i++, compared++) {
        const float allowed = kind >= 2 ? 0 : 1e-5f * std::sqrt(static_cast<float>(inputs)) * (1 + std::fabs(plain[i]));
        if (!(std::fabs(plain[i] - other[i]) <= allowed)) {
            std::printf("kind %d, %d x %d, %d rows: %.9g, not %.9g\n", kind, rows, inputs, count, other[i], plain[i]);
            return false;
        }
    }
    for (int row = 0; row < count; row++) {
        if (cutaway_product(name, kind, rows, inputs, packed, 1, x.data() + static_cast<size_t>(row) * inputs, alone.data())) return false;
        if (std::memcmp(alone.data(), other.data() + static_cast<size_t>(row) * rows, sizeof(float) * rows)) {
            std::printf("kind %d, %d x %d: row %d of %d differs from itself alone\n", kind, rows, inputs, row, count);
            return false;
        }
    }
    return true;
}

int main(int, char** given) {
    const char* best = cutaway_kernels("");
    if (!cutaway_kernels(given[1])) return std::printf("no %s here, but %s\n", given[1], best), 2;
    const int shapes[][2] = {{1, 1}, {16, 64}, {17, 63}, {33, 100}, {50, 7}, {48, 192}, {15, 129}, {40, 1500}};
    for (int kind = 0; kind < 4; kind++)
        for (const auto& shape : shapes)
            for (int count : {1, 2, 3, 4, 5, 7, 13, 130})
                if (!same(given[1], kind, shape[0], shape[1], count)) return 1;
    std::printf("%s: %d numbers compared\n", best, compared);
}
