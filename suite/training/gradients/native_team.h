// Threads that take one batch together. Each has a share of its examples all the way forward and back; where a sum
// over all examples is due they meet, and each goes on with a share of the parameters.
#pragma once

#include <dlfcn.h>

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

// How threads of the framework's own OpenMP library share a region, where there is one in this process: they wait
// awake for some milliseconds after its work, and would take the cores from threads of another making.
struct OpenMP {
    void (*region)(void (*)(void*), void*, unsigned threads, unsigned flags);
    int (*rank)();
    int (*size)();

    OpenMP() {
        find(region, "GOMP_parallel"), find(rank, "omp_get_thread_num"), find(size, "omp_get_num_threads");
    }
    bool there() const { return region && rank && size; }

private:
    template <class Function>
    static void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    }
};

// The sum of share(team) over at most `most` threads, in the order of their ranks.
template <class Share>
double by_team(long most, Share share) {
    if (most == 1) return share(Team{0, 1, nullptr});
    static const OpenMP openmp;
    Barrier barrier;
    std::vector<double> parts(most);
    if (openmp.there()) {
        auto part = [&] {  // of a team that the library may have made smaller
            const Team team{openmp.rank(), openmp.size(), openmp.size() > 1 ? &barrier : nullptr};
            parts[team.rank] = share(team);
        };
        openmp.region([](void* given) { (*static_cast<decltype(part)*>(given))(); }, &part, most, 0);
    } else {
        std::vector<std::thread> others;
        for (long rank = 1; rank < most; ++rank)
            others.emplace_back([&, rank] { parts[rank] = share(Team{rank, most, &barrier}); });
        parts[0] = share(Team{0, most, &barrier});
        for (auto& other : others) other.join();
    }
    double sum = 0;
    for (double part : parts) sum += part;
    return sum;
}
