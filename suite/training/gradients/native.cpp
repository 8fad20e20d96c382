// Loss and gradient of a small network in one call: forward and backward without a framework between the layers.
//
// A plan is a type, for example
//
//     Rows<Pictures<Conv<28, 28, 1, 20, 5, 1, 0>, MaxPool<24, 24, 20, 2, 2, 0, 12, 12>, ...>, Linear<800, 500>, ...>
//
// so that every extent is a constant of the compiler's. A map lies as [height][width][channels]; convolutions read
// it where it lies: for one row of the kernel, the kw x channels numbers under an output pixel follow one another,
// and the next pixel's begin stride x channels further. Weights lie as in the flat vector: a convolution's
// [out][kh][kw][in], a linear layer's [out][in], each before its biases. `real` is float or double.
//
// Layers of one example each (convolutions, pools, activations) are taken by blocks of a few examples, so that maps stay
// in the cache; linear layers, dropout and what batch norm couples take the whole batch, or a thread's share of it. The
// caller passes numbers `beside` the weights, layer after layer: what dropout multiplies by [examples][outputs], so that
// it can be the framework's own draw, and the running statistics of batch norm, which are advanced.

#include "native_residual.h"
#include "native_winograd.h"

// ---------------------------------------------------------------- composition

// A layer of one example, for n of them.
template <class Layer>
struct Each : Layer {
    static constexpr long own = padded(Layer::kept);
    static void forward(const real* w, const real* ready, long n, const real* in, real* out, real* kept, real*) {
        for (long m = 0; m < n; ++m)
            Layer::forward(w, ready, in + m * Layer::inputs, out + m * Layer::outputs, kept + m * own);
    }
    static void backward(const real* w, const real*, long n, const real* in, const real* out, const real* kept,
                         const real* dout, real* din, real* scratch, real* sums) {
        for (long m = 0; m < n; ++m)
            Layer::backward(w, in + m * Layer::inputs, out + m * Layer::outputs, kept + m * own,
                            dout + m * Layer::outputs, din ? din + m * Layer::inputs : nullptr, scratch, sums);
    }
};

// Layers of n examples each. Kept is what a backward pass reads, of each example; the rest is overwritten. `kept` and
// `scratch` are numbers of one example, and a layer's part is n times as large.
template <class... Layers>
struct Chain {
    static constexpr long parameters = 0, kept = 0, ready = 0, sums = 0, scratch = 0, block = 1;
    static constexpr int tensors = 0;
    static constexpr bool reads_input = true, winograd = false;  // what follows may read it
    static void prepare(const real*, real*) {}
    static void forward(const real*, const real*, long, const real*, real*, real*, real*) {}
    static void backward(const real*, const real*, long, const real*, const real*, const real*, const real*, real*,
                         real*, real*) {}
    template <class Sink>
    static void finish(const real*, real*, Sink) {}
};

template <class Given, class... Rest>
struct Chain<Given, Rest...> {
    using Layer = std::conditional_t<Given::together, Given, Each<Given>>;
    using Next = Chain<Rest...>;
    static constexpr bool last = sizeof...(Rest) == 0, keeps = !last && (Layer::reads_output || Next::reads_input);
    static constexpr bool reads_input = Layer::reads_input, winograd = Layer::together || Next::winograd;
    static constexpr long block = std::max(Layer::block, Next::block);  // examples to take together
    static constexpr long parameters = Layer::parameters + Next::parameters;
    static constexpr int tensors = Layer::tensors + Next::tensors;
    static constexpr long own = padded(Layer::kept), map = last ? 0 : padded(Layer::outputs);
    static constexpr long mine = own + (keeps ? map : 0), kept = mine + Next::kept;
    static constexpr long ready = padded(Layer::ready) + Next::ready, sums = padded(Layer::sums) + Next::sums;
    static constexpr long used = padded(Layer::scratch) + map, scratch = used + Next::scratch;

    static void prepare(const real* w, real* ready) {
        Layer::prepare(w, ready);
        Next::prepare(w + Layer::parameters, ready + padded(Layer::ready));
    }
    static void forward(const real* w, const real* ready, long n, const real* in, real* out, real* kept,
                        real* scratch) {
        real* to = last ? out : keeps ? kept + n * own : scratch + n * padded(Layer::scratch);
        Layer::forward(w, ready, n, in, to, kept, scratch);
        Next::forward(w + Layer::parameters, ready + padded(Layer::ready), n, to, out, kept + n * mine,
                      scratch + n * used);
    }
    // `out` and its gradient `dout` are the last layer's; a map's gradient lies in the scratch.
    static void backward(const real* w, const real* ready, long n, const real* in, const real* out, const real* kept,
                         const real* dout, real* din, real* scratch, real* sums) {
        const real* here = last ? out : kept + n * own;  // read only where it was kept
        const real* above = dout;
        if constexpr (!last) {
            real* gradient = scratch + n * padded(Layer::scratch);
            Next::backward(w + Layer::parameters, ready + padded(Layer::ready), n, here, out, kept + n * mine, dout,
                           gradient, scratch + n * used, sums + padded(Layer::sums));
            above = gradient;
        }
        if (din || Layer::parameters) Layer::backward(w, ready, n, in, here, kept, above, din, scratch, sums);
    }
    template <class Sink>
    static void finish(const real* sums, real* ready, Sink sink) {
        Layer::finish(sums, ready, sink);
        Next::finish(sums + padded(Layer::sums), ready + padded(Layer::ready), sink.template after<Layer>());
    }
};

template <class First, class... Rest>
struct Ends {
    static constexpr long inputs = First::inputs, outputs = Ends<Rest...>::outputs;
};
template <class Only>
struct Ends<Only> {
    static constexpr long inputs = Only::inputs, outputs = Only::outputs;
};

// The same for a batch, as one of Rows: `block` examples at a time, and the fewer that remain.
template <class... Layers>
struct Pictures {
    using All = Chain<Layers...>;
    static constexpr long inputs = Ends<Layers...>::inputs, outputs = Ends<Layers...>::outputs;
    static constexpr long parameters = All::parameters, block = All::block;
    static constexpr int tensors = All::tensors;
    static constexpr bool winograd = All::winograd;
    static long beside(long) { return 0; }
    static constexpr long each = All::ready + All::sums + block * All::scratch;  // of a thread's own numbers
    static long work(long M, long threads) { return threads * each + M * All::kept; }

    static void forward(Team team, long M, const real* w, const real* in, real* out, real* work, real*) {
        real *ready = work + team.rank * each, *scratch = ready + All::ready + All::sums;
        real* kept = work + team.size * each;
        All::prepare(w, ready);
        blocks(team, M, [&](long m, long n) {
            All::forward(w, ready, n, in + m * inputs, out + m * outputs, kept + m * All::kept, scratch);
        });
    }
    template <class Sink>
    static void backward(Team team, long M, const real* w, const real* in, const real* out, const real* dout,
                         real* din, Sink sink, real* work, real*) {
        real *ready = work + team.rank * each, *sums = ready + All::ready, *scratch = sums + All::sums;
        real* kept = work + team.size * each;
        std::memset(sums, 0, sizeof(real) * All::sums);
        blocks(team, M, [&](long m, long n) {
            All::backward(w, ready, n, in + m * inputs, out + m * outputs, kept + m * All::kept, dout + m * outputs,
                          din ? din + m * inputs : nullptr, scratch, sums);
        });
        if constexpr (parameters > 0) {
            team.meet();
            if (team.rank > 0) return;
            for (long rank = 1; rank < team.size; ++rank)
                for (long i = 0; i < All::sums; ++i) sums[i] += sums[rank * each + i];
            All::finish(sums, ready, sink);
        }
    }

private:
    template <class Of>
    static void blocks(Team team, long M, Of of) {
        for (long m = team.first(M), n; m < team.last(M); m += n) of(m, n = std::min(block, team.last(M) - m));
    }
};

template <long IN, long OUT>
struct Linear {
    static constexpr long inputs = IN, outputs = OUT, parameters = OUT * IN + OUT, block = 1;
    static constexpr int tensors = 2;
    static constexpr bool winograd = false;
    static long beside(long) { return 0; }
    static long together(long M) { return M < 8 ? 8 : 64; }  // outputs whose weights stay in the cache
    static long room(long M) { return padded(std::max(together(M) * IN, OUT)); }
    static long work(long M, long threads) { return threads * room(M); }

    template <int R, int O>
    static void some_rows(long& m, long M, const real* w, const real* in, real* out) {
        const real* bias = w + OUT * IN;
        for (; m + R <= M; m += R) {
            long o = 0;
            for (; o + O <= OUT; o += O) dots<R, O, IN>(in + m * IN, w + o * IN, bias + o, out + m * OUT + o, OUT);
            for (; o < OUT; ++o) dots<R, 1, IN>(in + m * IN, w + o * IN, bias + o, out + m * OUT + o, OUT);
        }
    }
    static void forward(Team team, long M, const real* w, const real* in, real* out, real*, real*) {
        long m = team.first(M);
        const long end = team.last(M);
        if constexpr (REGISTERS > 16) some_rows<4, 6>(m, end, w, in, out);
        some_rows<2, REGISTERS / 4>(m, end, w, in, out);
        some_rows<1, 8>(m, end, w, in, out);
    }
    // Some outputs at a time: one thread reads their weights and uses their gradients while the cache holds both.
    // Several go through their examples first, since what is used changes weights that another one has yet to read.
    template <class Sink>
    static void backward(Team team, long M, const real* w, const real* in, const real*, const real* dout, real* din,
                         Sink sink, real* work, real*) {
        const long some = together(M), from = team.first(M), rows = team.last(M) - from;
        const auto inputs_of = [&](long o, long end) {
            if (din)
                product<Into::More, 0, IN>(rows, 1, std::min(some, end - o), {dout + from * OUT + o, OUT, 1, 0},
                                           {w + o * IN, IN, 0}, din + from * IN, IN);
        };
        if (din) std::memset(din + from * IN, 0, sizeof(real) * rows * IN);
        if (team.size > 1)
            for (long o = 0; o < OUT; o += some) inputs_of(o, OUT);
        team.meet();
        real* block = work + team.rank * Linear::room(M);
        const long end = team.last(OUT);
        for (long o = team.first(OUT); o < end; o += some) {
            const long count = std::min(some, end - o);
            if (team.size == 1) inputs_of(o, end);
            real* dw = sink.room(o * IN, block);
            product<Into::Fresh, 0, IN>(count, 1, M, {dout + o, 1, OUT, 0}, {in, IN, 0}, dw, IN);
            sink.done(o * IN, count * IN, dw, 0);
        }
        if (team.rank > 0) return;
        static const real one = 1;
        real* db = sink.room(OUT * IN, block);
        product<Into::Fresh, 1, OUT>(1, 1, M, {&one, 0, 0, 0}, {dout, OUT, 0}, db, OUT);
        sink.done(OUT * IN, OUT, db, 1);
    }
};

// Multiplies by factors drawn for each number of the batch: 0, or 1 / (1 - p).
template <long N>
struct Dropout {
    static constexpr long inputs = N, outputs = N, parameters = 0, block = 1;
    static constexpr int tensors = 0;
    static constexpr bool winograd = false;
    static long work(long, long) { return 0; }
    static long beside(long M) { return M * N; }
    static void forward(Team team, long M, const real*, const real* in, real* out, real*, const real* factors) {
        for (long i = team.first(M) * N; i < team.last(M) * N; ++i) out[i] = in[i] * factors[i];
    }
    template <class Sink>
    static void backward(Team team, long M, const real*, const real*, const real*, const real* dout, real* din, Sink,
                         real*, const real* factors) {
        if (din)
            for (long i = team.first(M) * N; i < team.last(M) * N; ++i) din[i] = dout[i] * factors[i];
    }
};

// The cross-entropy of one example; e to the power of each output, from the largest on, and the sum of these.
template <long CLASSES>
real cross_entropy(const real* logits, std::int64_t target, real* powers, real& sum) {
    const real top = *std::max_element(logits, logits + CLASSES);
    for (long c = 0; c < CLASSES; ++c) sum += powers[c] = std::exp(logits[c] - top);
    return std::log(sum) + top - logits[target];
}

// The batch through all layers, the sum of this thread's cross-entropies, and the gradient of their mean back.
template <class... Layers>
struct Rows {
    static constexpr long parameters = 0, block = 1;
    static constexpr int tensors = 0;
    static constexpr bool winograd = false;
    static long work(long, long) { return 0; }
    template <long CLASSES, class Sink>
    static double run(Team team, long M, const real*, Sink, const real* logits, real* dlogits,
                      const std::int64_t* targets, real*, real*) {
        double loss = 0;
        logits += team.first(M) * CLASSES, dlogits += team.first(M) * CLASSES;
        for (long m = team.first(M); m < team.last(M); ++m, logits += CLASSES, dlogits += CLASSES) {
            real sum = 0;
            loss += cross_entropy<CLASSES>(logits, targets[m], dlogits, sum);
            for (long c = 0; c < CLASSES; ++c) dlogits[c] = (dlogits[c] / sum - (c == targets[m])) / M;
        }
        return loss;
    }
    template <long CLASSES>
    static void test(Team team, long M, const real*, const real* logits, const std::int64_t* targets, double* losses,
                     real*) {
        real powers[CLASSES];
        for (long m = team.first(M); m < team.last(M); ++m) {
            real sum = 0;
            losses[m] = cross_entropy<CLASSES>(logits + m * CLASSES, targets[m], powers, sum);
        }
    }
};

template <class Layer, class... Rest>
struct Rows<Layer, Rest...> {
    using Next = Rows<Rest...>;
    static constexpr long inputs = Layer::inputs, outputs = Ends<Layer, Rest...>::outputs;
    static constexpr long parameters = Layer::parameters + Next::parameters;
    static constexpr long block = std::max(Layer::block, Next::block);
    static constexpr int tensors = Layer::tensors + Next::tensors;
    static constexpr bool winograd = Layer::winograd || Next::winograd;
    static long work(long M, long threads) {
        return padded(Layer::work(M, threads)) + 2 * padded(M * Layer::outputs) + Next::work(M, threads);
    }
    // `beside`: numbers of this layer and of those after it.
    template <long CLASSES, class Sink>
    static double run(Team team, long M, const real* w, Sink sink, const real* in, real* din,
                      const std::int64_t* targets, real* work, real* beside) {
        real *out = work + padded(Layer::work(M, team.size)), *dout = out + padded(M * Layer::outputs);
        Layer::forward(team, M, w, in, out, work, beside);
        const double loss = Next::template run<CLASSES>(team, M, w + Layer::parameters, sink.template after<Layer>(),
                                                        out, dout, targets, dout + padded(M * Layer::outputs),
                                                        beside + Layer::beside(M));
        Layer::backward(team, M, w, in, out, dout, din, sink, work, beside);
        return loss;
    }
    // Forward alone, as networks are tested: nothing is dropped, and there is no batch norm. The cross-entropy of each of
    // this thread's examples.
    template <long CLASSES>
    static void test(Team team, long M, const real* w, const real* in, const std::int64_t* targets, double* losses,
                     real* work) {
        if constexpr (std::is_same_v<Layer, Dropout<Layer::inputs>>) {
            Next::template test<CLASSES>(team, M, w, in, targets, losses, work);
        } else {
            real* out = work + padded(Layer::work(M, team.size));
            Layer::forward(team, M, w, in, out, work, nullptr);
            Next::template test<CLASSES>(team, M, w + Layer::parameters, out, targets, losses,
                                         out + padded(M * Layer::outputs));
        }
    }
};

#ifdef PLAN
using Plan = PLAN;

extern "C" long parameters() { return Plan::parameters; }
extern "C" int tensors() { return Plan::tensors; }
extern "C" long block() { return Plan::block; }        // examples that convolutions take together
extern "C" bool winograd() { return Plan::winograd; }  // whether any of them is no direct sum
extern "C" long work(long examples, long threads) { return Plan::work(examples, threads); }  // scratch, in numbers

// Mean cross-entropy of `examples` pictures [h][w][channels] at w [parameters]; its gradient into dw [parameters].
extern "C" double gradient(const real* w, real* dw, const real* pictures, const std::int64_t* targets, long examples,
                           long threads, real* work, real* beside) {
    const auto share = [&](Team team) {
        return Plan::run<Plan::outputs>(team, examples, w, Write{dw}, pictures, nullptr, targets, work, beside);
    };
    return by_team(threads, share) / examples;
}

// The cross-entropy of each picture at w, without dropout, into losses [examples].
extern "C" void test(const real* w, const real* pictures, const std::int64_t* targets, long examples, long threads,
                     real* work, double* losses) {
    by_team(threads, [&](Team team) {
        Plan::test<Plan::outputs>(team, examples, w, pictures, targets, losses, work);
        return 0.0;
    });
}

// The mean cross-entropy at w, and a step by its gradient: velocity is advanced, and `to` is `from` moved on. All of
// [parameters]; w, from and to may be one. There is a rule for each of the tensors.
extern "C" double update(const real* w, const real* from, real* to, real* velocity, const Rule* rules, double momentum,
                         const real* pictures, const std::int64_t* targets, long examples, long threads, real* work,
                         real* beside) {
    const Step step{from, to, velocity, rules, static_cast<real>(momentum)};
    const auto share = [&](Team team) {
        return Plan::run<Plan::outputs>(team, examples, w, step, pictures, nullptr, targets, work, beside);
    };
    return by_team(threads, share) / examples;
}
#endif
