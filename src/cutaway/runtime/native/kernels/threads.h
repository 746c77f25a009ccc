// Threads that stay: work is cut into pieces, and whoever is awake takes the next one.
//
// Nobody waits for a thread that has not begun a piece: one that the system has put aside costs nothing but its help. On
// a machine shared with others that is the difference between a hiccup and a standstill.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

class Threads {
  public:
    explicit Threads(int count);  // the caller is one of them
    ~Threads();
    int count() const { return static_cast<int>(workers_.size()) + 1; }

    // work(piece, thread) for every piece below `pieces` (at most 65,535); returns when all are done.
    template <class Work>
    void run(int pieces, const Work& work) {
        if (pieces <= 1 || workers_.empty()) {
            for (int piece = 0; piece < pieces; piece++) work(piece, 0);
            return;
        }
        call_ = [](const void* self, int piece, int thread) { (*static_cast<const Work*>(self))(piece, thread); };
        self_ = &work;
        share(pieces);
    }

  private:
    // The whole state in one word: which job, how many pieces it has, which one is next.
    static constexpr uint64_t word(uint64_t job, uint64_t pieces, uint64_t next) { return job << 32 | pieces << 16 | next; }
    static int pieces_of(uint64_t word) { return static_cast<int>(word >> 16 & 0xffff); }
    static int next_of(uint64_t word) { return static_cast<int>(word & 0xffff); }

    void share(int pieces);
    void take_pieces(int thread);
    void live(int thread);

    void (*call_)(const void*, int, int) = nullptr;
    const void* self_ = nullptr;
    alignas(64) std::atomic<uint64_t> word_{0};
    alignas(64) std::atomic<int> done_{0};
    alignas(64) std::atomic<int> asleep_{0};
    std::atomic<uint32_t> bell_{0};
    std::atomic<bool> over_{false};
    uint64_t job_ = 0;
    std::vector<std::thread> workers_;
};
