// The gradient of a plan whose ReLUs and maxima are decided from outside, and how many it would have decided otherwise.
#include "native.cpp"

struct Decisions {  // of one layer: what comes next, and how many were not its own
    const std::int32_t* next;
    long flips;
};
static Decisions decisions[64];

// Whether each number passes. Kept: that.
template <int LAYER, long N>
struct MaskedRelu : Plain<N, N, false, false, N> {
    static void forward(const real*, const real*, const real* in, real* out, real* kept) {
        Decisions& given = decisions[LAYER];
        for (long i = 0; i < N; ++i) {
            kept[i] = given.next[i];
            given.flips += (in[i] > 0) != (kept[i] > 0);
            out[i] = kept[i] * in[i];
        }
        given.next += N;
    }
    static void backward(const real*, const real*, const real*, const real* kept, const real* dout, real* din, real*,
                         real*) {
        for (long i = 0; i < N; ++i) din[i] = kept[i] * dout[i];
    }
};

// The pixel that each maximum takes. Kept: its channel's place in the map, which a float counts exactly.
template <int LAYER, long H, long W, long C, long K, long S, long P, long OH, long OW>
struct MaskedMaxPool : Plain<H * W * C, OH * OW * C, false, false, OH * OW * C> {
    static void forward(const real*, const real*, const real* in, real* out, real* kept) {
        Decisions& given = decisions[LAYER];
        std::vector<real> highest(OH * OW * C, -INFINITY);
        windows<H, W, K, S, P, OH, OW>([&](long to, long from, long, long) {
            for (long c = 0; c < C; ++c) highest[to * C + c] = std::max(highest[to * C + c], in[from * C + c]);
        });
        for (long i = 0; i < OH * OW * C; ++i) {
            const long place = given.next[i] * C + i % C;
            kept[i] = place, out[i] = in[place];
            given.flips += out[i] != highest[i];
        }
        given.next += OH * OW * C;
    }
    static void backward(const real*, const real*, const real*, const real* kept, const real* dout, real* din, real*,
                         real*) {
        std::memset(din, 0, sizeof(real) * H * W * C);
        for (long i = 0; i < OH * OW * C; ++i) din[static_cast<long>(kept[i])] += dout[i];
    }
};

// Whether each sum passes: by its output, which backward reads.
template <int LAYER, class... Parts>
struct MaskedResidual : Residual<Parts...> {
    using Sum = Residual<Parts...>;
    static void forward(Team team, long M, const real* w, const real* in, real* out, real* work, real* beside) {
        Sum::forward(team, M, w, in, out, work, beside);
        Decisions& given = decisions[LAYER];
        for (long i = 0; i < M * Sum::outputs; ++i) {
            given.flips += (out[i] > 0) != (given.next[i] > 0);
            out[i] = given.next[i] ? std::max(out[i], real(1e-30)) : real(0);
        }
    }
};

using Masked = MASKED;
extern "C" long parameters() { return Masked::parameters; }

// `given`: for each decided layer [examples][outputs]; `running` are statistics. Returns the number of flips.
extern "C" long masked(const real* w, real* dw, const real* pictures, const std::int64_t* targets, real* running,
                       long examples, const std::int32_t** given, int layers) {
    for (int i = 0; i < layers; ++i) decisions[i] = {given[i], 0};
    std::vector<real> work(Masked::work(examples, 1));
    by_team(1, [&](Team team) {
        return Masked::run<Masked::outputs>(team, examples, w, Write{dw}, pictures, nullptr, targets, work.data(),
                                            running);
    });
    long flips = 0;
    for (int i = 0; i < layers; ++i) flips += decisions[i].flips;
    return flips;
}
