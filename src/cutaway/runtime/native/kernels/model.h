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
        size_t qkv, qkv_bias, merge, merge_bias, widen, widen_bias, mlp_projection, mlp_projection_bias;
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

// How weights are fetched before they are needed. It changes the speed and nothing else.
struct Pace {
    int32_t ahead = 8192;       // bytes
    int32_t waiting = 1 << 16;  // bytes more while a thread has nothing to do
};

class Model {
  public:
    // `weights` must outlive the model, and be aligned to 64 bytes.
    Model(const Shape& shape, const uint8_t* weights, int threads, const Kernels& kernels);

    // texts[i] reads counts[i] new tokens; the scores after the last wanted[i] of them go to `scores` [sum, vocabulary].
    void read(int texts, Text* const* which, const int32_t* counts, const int32_t* ids, const int32_t* wanted,
              float* scores);

    const Shape shape;
    const Kernels& kernels;
    void set_pace(const Pace& pace);

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
    Matrix vocabulary(size_t at) const;
    const float* floats(size_t at) const { return reinterpret_cast<const float*>(weights_ + at); }

    const Layout layout_;
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
