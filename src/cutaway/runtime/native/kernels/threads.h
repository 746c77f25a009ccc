// Threads that stay: work is cut into pieces, and whoever is awake takes the next one.
//
// Each thread begins with pieces of its own, one after the other, so that what it reads is one stream; when they are
// done it takes over those at the end of another's. Nobody waits for a thread that has not begun a piece: one that the
// system has put aside costs nothing but its help. On a machine shared with others that is the difference between a
// hiccup and a standstill.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

class Threads {
  public:
    explicit Threads(int count);  // the caller is one of them
    ~Threads();
    int count() const { return count_; }

    // Where the pieces of a thread's own begin; for count() where all end.
    int first_of(int thread, int pieces) const { return pieces * thread / count_; }

    // work(piece, thread) for every piece below `pieces` (at most 65,535); returns when all are done.
    template <class Work>
    void run(int pieces, const Work& work) {
        if (pieces <= 1 || count_ == 1) {
            for (int piece = 0; piece < pieces; piece++) work(piece, 0);
            return;
        }
        call_ = [](const void* self, int piece, int thread) { (*static_cast<const Work*>(self))(piece, thread); };
        self_ = &work;
        share(pieces);
    }

    // What a thread will read next: fetched into its caches while it waits. To be called from its own work.
    void fetch_while_waiting(int thread, const uint8_t* from, size_t bytes) {
        shares_[thread].from = from;
        shares_[thread].until = from + bytes;
    }

  private:
    // A thread's pieces in one word: which job, where they end, which one is next.
    struct alignas(64) Share {
        std::atomic<uint64_t> word{0};
        const uint8_t *from = nullptr, *until = nullptr;  // only its own thread looks at these
    };
    static constexpr uint64_t word(uint64_t job, uint64_t end, uint64_t next) { return job << 32 | end << 16 | next; }
    static int end_of(uint64_t word) { return static_cast<int>(word >> 16 & 0xffff); }
    static int next_of(uint64_t word) { return static_cast<int>(word & 0xffff); }

    void share(int pieces);
    bool is_work() const;
    void take_pieces(int thread);
    void take_from(Share& share, int thread, bool own);
    void breathe(int thread);
    void live(int thread);

    const int count_;
    void (*call_)(const void*, int, int) = nullptr;
    const void* self_ = nullptr;
    std::unique_ptr<Share[]> shares_;
    alignas(64) std::atomic<int> done_{0};
    alignas(64) std::atomic<int> asleep_{0};
    std::atomic<uint32_t> bell_{0};
    std::atomic<bool> over_{false};
    uint64_t job_ = 0;
    std::vector<std::thread> workers_;
};
