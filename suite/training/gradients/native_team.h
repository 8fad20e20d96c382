// Threads that take one batch together. Each has a share of its examples all the way forward and back; where a sum
// over all examples is due they meet, and each goes on with a share of the parameters.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

// Where all of them wait for the last one: turning round for a few microseconds, then leaving the core to others.
class Barrier {
    std::atomic<long> arrived{0}, passed{0};

public:
    void meet(long size) {
        const long before = passed.load();
        if (arrived.fetch_add(1) + 1 == size) {
            arrived.store(0);
            passed.fetch_add(1);
        } else {
            for (long turns = 0; passed.load() == before; ++turns)
                if (turns > 4096) std::this_thread::yield();
        }
    }
};

struct Team {
    long rank, size;
    Barrier* barrier;  // nothing for a team of one

    long first(long n) const { return n * rank / size; }  // of this one's share of n things, which ends before last
    long last(long n) const { return n * (rank + 1) / size; }
    void meet() const {
        if (size > 1) barrier->meet(size);
    }
};

// The sum of share(team) over `size` threads, in the order of their ranks.
template <class Share>
double by_team(long size, Share share) {
    if (size == 1) return share(Team{0, 1, nullptr});
    Barrier barrier;
    std::vector<double> parts(size);
    std::vector<std::thread> others;
    for (long rank = 1; rank < size; ++rank)
        others.emplace_back([&, rank] { parts[rank] = share(Team{rank, size, &barrier}); });
    parts[0] = share(Team{0, size, &barrier});
    double sum = parts[0];
    for (long rank = 1; rank < size; ++rank) {
        others[rank - 1].join();
        sum += parts[rank];
    }
    return sum;
}
