#include "threads.h"

namespace {

constexpr int SPINS = 4000;  // some tens of microseconds: longer than any gap within a step
constexpr int LINES = 2;     // fetched between two looks for work

inline void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

Threads::Threads(int count) : count_(count), shares_(std::make_unique<Share[]>(count)) {
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
    for (int thread = 0; thread < count_; thread++)
        shares_[thread].word.store(word(job_, first_of(thread + 1, pieces), first_of(thread, pieces)),
                                   std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst) > 0) {
        bell_.fetch_add(1);
        bell_.notify_all();
    }
    take_pieces(0);
    for (int spins = 0; done_.load(std::memory_order_acquire) < pieces;) {
        if (++spins < SPINS) breathe(0);
        else std::this_thread::yield();  // whoever has the last piece may be waiting for this very processor
    }
}

bool Threads::is_work() const {
    for (int thread = 0; thread < count_; thread++) {
        const uint64_t now = shares_[thread].word.load(std::memory_order_seq_cst);
        if (next_of(now) < end_of(now)) return true;
    }
    return false;
}

void Threads::take_pieces(int thread) {
    take_from(shares_[thread], thread, true);
    for (int other = 1; other < count_; other++) take_from(shares_[(thread + other) % count_], thread, false);
}

void Threads::take_from(Share& share, int thread, bool own) {
    uint64_t now = share.word.load(std::memory_order_acquire);
    while (next_of(now) < end_of(now)) {
        // If this succeeds the job cannot end before the piece is done, so call_ and self_ are this job's.
        const uint64_t taken = own ? now + 1 : now - (uint64_t{1} << 16);
        if (!share.word.compare_exchange_weak(now, taken, std::memory_order_acq_rel)) continue;
        call_(self_, own ? next_of(now) : end_of(now) - 1, thread);
        done_.fetch_add(1, std::memory_order_release);
        now = share.word.load(std::memory_order_acquire);
    }
}

void Threads::breathe(int thread) {
    Share& own = shares_[thread];
    if (own.from >= own.until) return rest();
    for (int line = 0; line < LINES; line++, own.from += 64) __builtin_prefetch(own.from, 0, 2);
}

void Threads::live(int thread) {
    int spins = 0;
    while (!over_.load(std::memory_order_relaxed)) {
        if (is_work()) {
            take_pieces(thread);
            spins = 0;
        } else if (++spins < SPINS) {
            breathe(thread);
        } else {
            const uint32_t rung = bell_.load();
            asleep_.fetch_add(1, std::memory_order_seq_cst);
            if (!is_work() && !over_) bell_.wait(rung);  // unless one came before we lay down
            asleep_.fetch_sub(1);
            spins = 0;
        }
    }
}
