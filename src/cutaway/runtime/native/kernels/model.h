// The whole model: one call carries some new tokens of some texts up the stack.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "cache.h"
#include "kernels.h"
#include "threads.h"

// Where everything lies in the one piece of memory that holds the weights, in the order it is listed.
struct Layout {
    struct Layer {
        size_t attention_norm, attention_norm_bias, mlp_norm, mlp_norm_bias;
        size_t qkv, qkv_bias, distances, merge, merge_bias, widen, widen_bias, mlp_projection, mlp_projection_bias;
    };
    size_t tokens, positions, final_norm, final_norm_bias, output, bytes;
    std::vector<Layer> layers;

    explicit Layout(const Shape& shape);
};

// Zeros to work in. What is never touched takes no memory: few tokens at a time need few rows.
template <class Number>
class Room {
  public:
    void make(size_t count) {
        numbers_.reset(static_cast<Number*>(std::calloc(count, sizeof(Number))));
        if (!numbers_) throw std::bad_alloc();
    }
    Number* data() { return numbers_.get(); }

  private:
    struct Free {
        void operator()(Number* numbers) const { std::free(numbers); }
    };
    std::unique_ptr<Number[], Free> numbers_;
};

// How far ahead weights are fetched, in bytes: it changes the speed and nothing else. What is best depends on the processor,
// its memory and the kind of weights, so the first steps of one token each try every distance in turn; what they take says
// which one stays.
class Pace {
  public:
    int ahead() const { return ahead_; }
    void fix(int bytes) { ahead_ = bytes, trials_ = ENOUGH; }
    bool settled() const { return trials_ == ENOUGH; }
    void took(double seconds);  // by a step of one token

  private:
    static constexpr int DISTANCES[] = {8192, 1024, 2048, 4096, 16384};
    static constexpr int COUNT = sizeof DISTANCES / sizeof *DISTANCES, EACH = 9, ENOUGH = COUNT * EACH;
    int ahead_ = DISTANCES[0], trials_ = 0;
    double seconds_[COUNT][EACH];
};

class Model {
  public:
    // `weights` must outlive the model, and be aligned to 64 bytes.
    Model(const Shape& shape, const uint8_t* weights, int threads, const Kernels& kernels);

    // texts[i] reads counts[i] new tokens; the scores after the last wanted[i] of them go to `scores` [sum, vocabulary].
    void read(int texts, Text* const* which, const int32_t* counts, const int32_t* ids, const int32_t* wanted,
              float* scores);

    std::unique_ptr<Text> text() const { return std::make_unique<Text>(keeping_, spare_); }

    const Shape shape;
    const Kernels& kernels;
    void fetch_ahead(int bytes);  // from now on, instead of trying
    int fetches_ahead();

  private:
    struct Row {
        Text* text;
        int position, id;
        float* scores;  // null: not wanted
    };
    struct Run {  // consecutive tokens of one text
        int first, count;
    };

    void forward(const Row* rows, int count);
    template <class Work>
    void each(int count, const Work& work);  // work(row), shared among the threads if there are enough rows
    void normalise(int count, size_t weight, size_t bias);
    void prepare(const Rows& rows, const float* from, size_t stride, int width);
    void multiply(const Matrix& matrix, const Rows& rows, const Finish& finish, const Matrix& next);
    void attend(const Row* rows, int count, int layer);
    void score(const Row* rows, int count);
    Matrix matrix(size_t at, int rows, int inputs) const;
    Matrix output() const;
    const float* floats(size_t at) const { return reinterpret_cast<const float*>(weights_ + at); }

    const Layout layout_;
    const Keeping keeping_;
    const std::shared_ptr<Spare> spare_;
    const uint8_t* weights_;
    Threads threads_;
    Pace pace_;
    std::mutex busy_;
    size_t row_, hidden_row_, all_row_, whole_row_;
    Room<float> residual_, normed_, all_, merged_, hidden_, scales_, scratch_;
    Room<int8_t> whole_;
    Room<int32_t> sums_;
    std::vector<Run> runs_;
};
