#include "model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "pack.h"

namespace {

constexpr int TOGETHER = 128;  // tokens that go through the stack side by side: their activations stay in the caches
constexpr int FEW = 4;         // tokens: what is done for each one alone is not worth sharing
constexpr int WAITING = 1 << 16;  // bytes that a thread fetches of the next matrix while it waits for the others
constexpr int PIECES = 4;      // of work for each thread: few enough to stream, enough for one that comes late

// Bytes from one row to the next: rows read side by side must not meet in the same lines of the first cache.
size_t apart(size_t bytes) {
    bytes = up(bytes, 64);
    const size_t rest = bytes % 4096;
    return rest < 1024 ? bytes + 1024 - rest : rest > 3072 ? bytes + 5120 - rest : bytes;
}

// Where piece `n` of `pieces` begins.
int edge(const Matrix& matrix, int n, int pieces) {
    return static_cast<int>(static_cast<int64_t>(matrix.tiles()) * n / pieces);
}

Kind kind_of(const Shape& shape) { return static_cast<Kind>(shape.kind); }

// A token's embedding is where rounding costs most, and only one row is read of it for a token: int4 keeps it in int8, and
// has the output matrix, of which all is read, in int4 beside it.
Kind tokens_kind_of(const Shape& shape) { return kind_of(shape) == INT4 ? INT8 : kind_of(shape); }

// What is learned of distances stays in float32, and with it what meets it.
bool rounds(const Shape& shape, const Kernels& kernels) {
    return kernels.attend_rounded != nullptr && kind_of(shape) != FLOAT32 && !shape.relative;
}

}  // namespace

Layout::Layout(const Shape& shape) {
    size_t at = 0;
    const Kind kind = kind_of(shape);
    auto take = [&](size_t size) { return std::exchange(at, at + up(size, 64)); };
    auto floats = [&](int count) { return take(sizeof(float) * static_cast<size_t>(count)); };
    auto matrix = [&](int rows, int inputs) { return take(Matrix{kind, rows, inputs, nullptr}.bytes()); };
    tokens = take(Matrix{tokens_kind_of(shape), shape.vocabulary, shape.width, nullptr}.bytes());
    positions = shape.relative ? at : floats(shape.context * shape.width);
    for (int layer = 0; layer < shape.layers; layer++) {
        Layer one;
        one.attention_norm = floats(shape.width);
        one.attention_norm_bias = floats(shape.width);
        one.qkv = matrix(3 * shape.width, shape.width);
        one.qkv_bias = floats(3 * shape.width);
        one.distances = shape.relative ? floats(shape.context * shape.width + LANES + QUERIES) : at;  // read past the end
        one.merge = matrix(shape.width, shape.width);
        one.merge_bias = floats(shape.width);
        one.mlp_norm = floats(shape.width);
        one.mlp_norm_bias = floats(shape.width);
        one.widen = matrix(shape.mlp_width, shape.width);
        one.widen_bias = floats(shape.mlp_width);
        one.mlp_projection = matrix(shape.width, shape.mlp_width);
        one.mlp_projection_bias = floats(shape.width);
        layers.push_back(one);
    }
    final_norm = floats(shape.width);
    final_norm_bias = floats(shape.width);
    output = shape.shares_tokens() ? tokens : matrix(shape.vocabulary, shape.width);
    bytes = at;
}

Model::Model(const Shape& given, const uint8_t* weights, int threads, const Kernels& chosen)
    : shape(given), kernels(chosen), layout_(given), keeping_{given, rounds(given, chosen)},
      spare_(std::make_shared<Spare>(given)), weights_(weights), threads_(threads) {
    row_ = apart(sizeof(float) * up(shape.width, 64)) / sizeof(float);
    hidden_row_ = apart(sizeof(float) * up(shape.mlp_width, 64)) / sizeof(float);
    all_row_ = apart(sizeof(float) * 3 * shape.width) / sizeof(float);
    const size_t widest = up(std::max(shape.width, shape.mlp_width), 64);
    whole_row_ = apart(kind_of(shape) == BFLOAT16 ? 2 * widest : widest);
    residual_.make(TOGETHER * row_);
    normed_.make(TOGETHER * row_);
    merged_.make(TOGETHER * row_);
    all_.make(TOGETHER * all_row_);
    hidden_.make(TOGETHER * hidden_row_);
    if (kernels.quantises(kind_of(shape))) whole_.make(TOGETHER * whole_row_);
    if (is_quantised(kind_of(shape))) {
        scales_.make(TOGETHER * widest / 32);
        sums_.make(TOGETHER * widest / 32);
    }
    scratch_.make(threads_.count() * QUERIES * (up(shape.context, BLOCK) + up(shape.head_width(), LANES)));
}

void Pace::took(double seconds) {
    if (settled()) return;
    seconds_[trials_ % COUNT][trials_ / COUNT] = seconds;
    trials_++;
    int best = trials_ % COUNT;
    if (settled()) {  // a machine has other things to do, which only ever take time: the quicker steps say what is possible
        best = 0;
        for (int i = 0; i < COUNT; i++) {
            std::sort(seconds_[i], seconds_[i] + EACH);
            if (seconds_[i][EACH / 4] < seconds_[best][EACH / 4]) best = i;
        }
    }
    ahead_ = DISTANCES[best];
}

void Model::fetch_ahead(int bytes) {
    std::lock_guard<std::mutex> alone(busy_);
    pace_.fix(bytes);
}

int Model::fetches_ahead() {
    std::lock_guard<std::mutex> alone(busy_);
    return pace_.settled() ? pace_.ahead() : 0;
}

Matrix Model::matrix(size_t at, int rows, int inputs) const { return {kind_of(shape), rows, inputs, weights_ + at}; }

Matrix Model::output() const { return matrix(layout_.output, shape.vocabulary, shape.width); }

void Model::read(int texts, Text* const* which, const int32_t* counts, const int32_t* ids, const int32_t* wanted,
                 float* scores) {
    std::lock_guard<std::mutex> alone(busy_);
    std::vector<Row> rows;
    for (int text = 0; text < texts; text++) {
        Text* one = which[text];
        one->make_room(one->length + counts[text]);
        for (int i = 0; i < counts[text]; i++, ids++) {
            const bool scored = i >= counts[text] - wanted[text];
            rows.push_back({one, one->length + i, *ids, scored ? scores : nullptr});
            if (scored) scores += shape.vocabulary;
        }
    }
    const bool timed = rows.size() == 1 && !pace_.settled();
    const auto begun = timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    for (size_t first = 0; first < rows.size(); first += TOGETHER)
        forward(rows.data() + first, static_cast<int>(std::min<size_t>(TOGETHER, rows.size() - first)));
    if (timed) pace_.took(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    for (int text = 0; text < texts; text++) which[text]->length += counts[text];
}

template <class Work>
void Model::each(int count, const Work& work) {
    if (count > FEW) threads_.run(count, [&](int row, int) { work(row); });
    else
        for (int row = 0; row < count; row++) work(row);
}

void Model::forward(const Row* rows, int count) {
    const Matrix tokens{tokens_kind_of(shape), shape.vocabulary, shape.width, weights_ + layout_.tokens};
    each(count, [&](int row) {
        float* into = residual_.data() + row * row_;
        unpack_row(tokens, rows[row].id, into);
        if (shape.relative) return;
        const float* place = floats(layout_.positions) + static_cast<size_t>(rows[row].position) * shape.width;
        for (int i = 0; i < shape.width; i++) into[i] += place[i];
    });
    runs_.clear();
    for (int row = 0; row < count; row++) {
        const bool goes_on = row > 0 && rows[row].text == rows[row - 1].text && runs_.back().count < QUERIES;
        goes_on ? (void)runs_.back().count++ : runs_.push_back({row, 1});
    }

    const Kind kind = kind_of(shape);
    const int padded = static_cast<int>(up(shape.width, group_of(kind)));
    const int hidden_padded = static_cast<int>(up(shape.mlp_width, group_of(kind)));
    auto rows_of = [&](Room<float>& from, size_t stride, int numbers) {
        return Rows{kind, count, numbers, from.data(), stride, whole_.data(), whole_row_, scales_.data(), sums_.data(),
                    std::min(count, kernels.together)};
    };
    const Rows normed = rows_of(normed_, row_, padded), merged = rows_of(merged_, row_, padded);
    const Rows hidden = rows_of(hidden_, hidden_row_, hidden_padded);
    const auto activation = static_cast<Activation>(shape.activation);

    auto qkv_of = [&](int layer) { return matrix(layout_.layers[layer].qkv, 3 * shape.width, shape.width); };
    for (int layer = 0; layer < shape.layers; layer++) {
        const Layout::Layer& at = layout_.layers[layer];
        const Matrix qkv = qkv_of(layer), merge = matrix(at.merge, shape.width, shape.width);
        const Matrix widen = matrix(at.widen, shape.mlp_width, shape.width);
        const Matrix mlp_projection = matrix(at.mlp_projection, shape.width, shape.mlp_width);
        normalise(count, at.attention_norm, at.attention_norm_bias);
        prepare(normed, normed_.data(), row_, shape.width);
        multiply(qkv, normed, {STORE, activation, floats(at.qkv_bias), all_.data(), all_row_}, merge);
        attend(rows, count, layer);
        prepare(merged, merged_.data(), row_, shape.width);
        multiply(merge, merged, {ADD, activation, floats(at.merge_bias), residual_.data(), row_}, widen);
        normalise(count, at.mlp_norm, at.mlp_norm_bias);
        prepare(normed, normed_.data(), row_, shape.width);
        multiply(widen, normed, {ACTIVATE, activation, floats(at.widen_bias), hidden_.data(), hidden_row_}, mlp_projection);
        prepare(hidden, hidden_.data(), hidden_row_, shape.mlp_width);
        multiply(mlp_projection, hidden, {ADD, activation, floats(at.mlp_projection_bias), residual_.data(), row_},
                 layer + 1 < shape.layers ? qkv_of(layer + 1) : output());
    }
    score(rows, count);
}

void Model::normalise(int count, size_t weight, size_t bias) {
    each(count, [&](int row) {
        kernels.normalise(residual_.data() + row * row_, shape.width, floats(weight), floats(bias), shape.norm_epsilon,
                          normed_.data() + row * row_);
    });
}

void Model::prepare(const Rows& rows, const float* from, size_t stride, int width) {
    if (!kernels.quantises(rows.kind)) return;
    each(rows.count, [&](int row) { kernels.quantise(from + row * stride, width, rows, row); });
}

void Model::multiply(const Matrix& matrix, const Rows& rows, const Finish& finish, const Matrix& next) {
    const int pieces = std::min(matrix.tiles(), PIECES * threads_.count());
    const int next_pieces = std::min(next.tiles(), PIECES * threads_.count());
    auto begins = [](const Matrix& one, int piece, int of) { return one.tile(edge(one, piece, of)); };
    threads_.run(pieces, [&](int piece, int thread) {
        const int own_end = threads_.first_of(thread + 1, pieces);
        const bool own = piece < own_end && piece >= threads_.first_of(thread, pieces);
        const uint8_t* end = begins(matrix, own ? own_end : piece + 1, pieces);
        const uint8_t* after = begins(next, threads_.first_of(thread, next_pieces), next_pieces);
        kernels.product(matrix, edge(matrix, piece, pieces), edge(matrix, piece + 1, pieces), rows, finish,
                        {pace_.ahead(), end, own ? after : nullptr});
        if (own && piece + 1 == own_end) threads_.fetch_while_waiting(thread, after + pace_.ahead(), WAITING);
    });
}

void Model::attend(const Row* rows, int count, int layer) {
    const int width = shape.head_width();
    auto keep = [&](int head, int) {
        for (int row = 0; row < count; row++) {
            const float* keys = all_.data() + row * all_row_ + shape.width + static_cast<size_t>(head) * width;
            rows[row].text->put(layer, head, rows[row].position, keys, keys + shape.width);
        }
    };
    if (count > FEW) threads_.run(shape.heads, keep);
    else
        for (int head = 0; head < shape.heads; head++) keep(head, 0);
    const float scale = 1 / std::sqrt(static_cast<float>(width)) / static_cast<float>(shape.scale_by_layer ? layer + 1 : 1);
    const size_t weights = up(shape.context, BLOCK), room = weights + up(width, LANES);
    const float* distances = shape.relative ? floats(layout_.layers[layer].distances) : nullptr;
    threads_.run(static_cast<int>(runs_.size()) * shape.heads, [&](int piece, int thread) {
        const int runs = static_cast<int>(runs_.size()), head = piece / runs;  // head by head: its keys stay near
        const Run& run = runs_[piece % runs];
        const Row& first = rows[run.first];
        (keeping_.rounded ? kernels.attend_rounded : kernels.attend)({
            .queries = all_.data() + run.first * all_row_ + static_cast<size_t>(head) * width,
            .query_stride = all_row_,
            .out = merged_.data() + run.first * row_ + static_cast<size_t>(head) * width,
            .out_stride = row_,
            .count = run.count,
            .first = first.position,
            .width = width,
            .scale = scale,
            .blocks = first.text->blocks(),
            .keys_at = shape.keys_at(layer, head),
            .values_at = shape.values_at(layer, head),
            .distances = distances ? distances + static_cast<size_t>(head) * width * shape.context : nullptr,
            .context = shape.context,
            .scratch = scratch_.data() + thread * QUERIES * room,
            .scratch_stride = room,
            .sums_at = weights,
        });
    });
}

void Model::score(const Row* rows, int count) {
    int scored = 0;  // their vectors move up, so that only they meet the output matrix
    float* scores = nullptr;
    for (int row = 0; row < count; row++) {
        if (rows[row].scores == nullptr) continue;
        if (scored == 0) scores = rows[row].scores;
        std::copy_n(residual_.data() + row * row_, shape.width, residual_.data() + scored * row_);
        scored++;
    }
    if (scored == 0) return;
    normalise(scored, layout_.final_norm, layout_.final_norm_bias);
    const Kind kind = kind_of(shape);
    const Rows normed{kind, scored, static_cast<int>(up(shape.width, group_of(kind))), normed_.data(), row_,
                      whole_.data(), whole_row_, scales_.data(), sums_.data(), std::min(scored, kernels.together)};
    prepare(normed, normed_.data(), row_, shape.width);
    multiply(output(), normed,
             {STORE, GELU_TANH, nullptr, scores, static_cast<size_t>(shape.vocabulary)},
             matrix(layout_.layers[0].qkv, 3 * shape.width, shape.width));
}
