// Every path of the engine on odd shapes, from two threads at once: to be run under a sanitizer (test_sanitizers.py).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

struct Shape {
    int32_t vocabulary, context, width, layers, heads, mlp_width, activation, tied, scale_by_layer, relative, kind;
    float norm_epsilon;
};

extern "C" {
const char* cutaway_kernels(const char*);
int32_t cutaway_pack(int32_t, int32_t, int32_t, const float*, uint8_t*, int32_t, const float*);
void cutaway_unpack(int32_t, int32_t, int32_t, const uint8_t*, float*);
uint64_t cutaway_model_bytes(const Shape*);
int32_t cutaway_model_layout(const Shape*, uint64_t*);
void* cutaway_open(const Shape*, const uint8_t*, int32_t, const char*);
void cutaway_fetch_ahead(void*, int32_t);
void cutaway_close(void*);
void* cutaway_text_new(const void*);
void* cutaway_text_fork(const void*);
int32_t cutaway_text_trim(void*, int32_t);
int32_t cutaway_text_length(const void*);
void cutaway_text_free(void*);
int32_t cutaway_read(void*, int32_t, void* const*, const int32_t*, const int32_t*, const int32_t*, float*);
}

static void use(void* model, const Shape& shape, int seed) {
    std::mt19937 dice(seed);
    auto below = [&](int n) { return static_cast<int>(dice() % n); };
    std::vector<void*> texts(3);
    for (auto& text : texts) text = cutaway_text_new(model);
    for (int step = 0; step < 10; step++) {
        std::vector<void*> some;
        std::vector<int32_t> counts, ids, wanted;
        int rows = 0;
        for (void* text : texts) {
            int room = shape.context - cutaway_text_length(text);
            int count = room ? 1 + below(step % 5 ? (room < 3 ? room : 3) : room) : 0;
            if (!count) {
                cutaway_text_trim(text, below(shape.context));
                continue;
            }
            some.push_back(text);
            counts.push_back(count);
            for (int i = 0; i < count; i++) ids.push_back(below(shape.vocabulary));
            wanted.push_back(below(count + 1));
            rows += wanted.back();
        }
        std::vector<float> scores(static_cast<size_t>(rows) * shape.vocabulary);
        if (cutaway_read(model, some.size(), some.data(), counts.data(), ids.data(), wanted.data(), scores.data())) std::abort();
        for (float score : scores)
            if (!std::isfinite(score)) std::abort();
        int from = below(3), to = (from + 1 + below(2)) % 3;
        cutaway_text_free(texts[to]);
        texts[to] = cutaway_text_fork(texts[from]);
    }
    for (void* text : texts) cutaway_text_free(text);
}

static void try_shape(Shape shape, const char* kernels) {
    std::mt19937 dice(1);
    std::normal_distribution<float> normal(0, 0.2f);
    std::vector<uint64_t> places(5 + 13 * shape.layers);
    const int count = cutaway_model_layout(&shape, places.data());
    const size_t bytes = cutaway_model_bytes(&shape);
    auto* memory = static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    const int w = shape.width, h = shape.mlp_width;
    // Relative attention has no table of positions, and in each layer one of distances.
    const int before = shape.relative ? 1 : 2, each = shape.relative ? 13 : 12, after = before + each * shape.layers;
    for (int i = 0; i < count; i++) {
        int rows = w, inputs = 0;
        int inner = (i - before) % each;
        if (i == 0 || i == after + 2) rows = shape.vocabulary, inputs = w;
        else if (i < before || (i < after && shape.relative && inner == 4)) rows = shape.context * w;
        else if (i < after) {
            inner -= shape.relative && inner > 4;
            const int sizes[12][2] = {{w, 0}, {w, 0}, {3 * w, w}, {3 * w, 0}, {w, w}, {w, 0}, {w, 0}, {w, 0}, {h, w}, {h, 0}, {w, h}, {w, 0}};
            rows = sizes[inner][0], inputs = sizes[inner][1];
        }
        std::vector<float> numbers(static_cast<size_t>(rows) * (inputs ? inputs : 1));
        for (float& number : numbers) number = normal(dice);
        if (inputs) {
            const int32_t kind = i == 0 && shape.kind == 3 ? 2 : shape.kind;  // int4 keeps the token embedding in int8
            cutaway_pack(kind, rows, inputs, numbers.data(), memory + places[i], 2, nullptr);
            cutaway_unpack(kind, rows, inputs, memory + places[i], numbers.data());
        } else {
            std::memcpy(memory + places[i], numbers.data(), sizeof(float) * numbers.size());
        }
    }
    for (int threads = 1; threads <= 3; threads++) {
        void* model = cutaway_open(&shape, memory, threads, kernels);
        if (threads > 1) cutaway_fetch_ahead(model, 64 << (4 * threads - 8));
        std::thread other([&] { use(model, shape, 7); });
        use(model, shape, 8);
        other.join();
        cutaway_close(model);
    }
    std::free(memory);
}

int main() {
    for (const char* kernels : {"plain", "avx2", "avx512bw", "avx512", "avx512bf16", "neon"}) {
        if (!cutaway_kernels(kernels)) continue;
        for (int32_t kind = 0; kind < 4; kind++) {
            try_shape({37, 70, 12, 2, 3, 19, 0, 1, 0, 0, kind, 1e-5f}, kernels);
            try_shape({37, 70, 12, 2, 3, 19, 0, 1, 0, 1, kind, 1e-5f}, kernels);
            try_shape({17, 130, 35, 1, 5, 140, kind, 0, 1, kind % 2, kind, 1e-5f}, kernels);
            try_shape({1, 1, 1, 1, 1, 1, 0, 1, 0, 0, kind, 1e-5f}, kernels);
        }
    }
    std::puts("done");
}
