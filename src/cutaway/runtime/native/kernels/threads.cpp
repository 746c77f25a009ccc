#include "threads.h"

namespace {

constexpr int SPINS = 4000;  // some tens of microseconds: longer than any gap within a step

inline void breathe() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

Threads::Threads(int count) {
    for (int thread = 1; thread < count; thread++) workers_.emplace_back([this, thread] { live(thread); });
}

Threads::~Threads() {
    over_ = true;
    bell_++;
    bell_.notify_all();
    for (auto& worker : workers_) worker.join();
}

void Threads::share(int pieces) {
    done_.store(0, std::memory_order_relaxed);
    job_ = (job_ + 1) & 0xffffffff;
    word_.store(word(job_, pieces, 0), std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) > 0) {
        bell_.fetch_add(1);
        bell_.notify_all();
    }
    take_pieces(0);
    for (int spins = 0; done_.load(std::memory_order_acquire) < pieces;) {
        if (++spins < SPINS) breathe();
        else std::this_thread::yield();  // whoever has the last piece may be waiting for this very processor
    }
}

void Threads::take_pieces(int thread) {
    uint64_t now = word_.load(std::memory_order_acquire);
    while (next_of(now) < pieces_of(now)) {
        // If this succeeds the job cannot end before the piece is done, so call_ and self_ are this job's.
        if (!word_.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) continue;
        call_(self_, next_of(now), thread);
        done_.fetch_add(1, std::memory_order_release);
        now = word_.load(std::memory_order_acquire);
    }
}

void Threads::live(int thread) {
    int spins = 0;
    while (!over_.load(std::memory_order_relaxed)) {
        uint64_t now = word_.load(std::memory_order_acquire);
        if (next_of(now) < pieces_of(now)) {
            take_pieces(thread);
            spins = 0;
        } else if (++spins < SPINS) {
            breathe();
        } else {
            const uint32_t rung = bell_.load();
            asleep_.fetch_add(1, std::memory_order_seq_cst);
            now = word_.load(std::memory_order_seq_cst);  // a job that came before we lay down
            if (next_of(now) >= pieces_of(now) && !over_) bell_.wait(rung);
            asleep_.fetch_sub(1);
            spins = 0;
        }
    }
}
