// Batch norm and residual blocks: layers that take a whole batch, or a thread's share of it.
#pragma once

#include "native_products.h"
#include "native_team.h"

// Batch norm of C channels over a batch of maps, and a ReLU behind it. Per channel, with n numbers x and gradients g:
//
//     y = s (x - mean) + bias,   s = weight / sqrt(variance + eps)
//     dx = s (g - sum of g / n - (x - mean) (sum of g (x - mean) / n) / (variance + eps))
//
// Sums are of x less a pixel's mean, which the variance then is no small difference of, and no longer than some spans
// in single precision. Eps and Momentum are of std::ratio; beside: running mean [C] and variance [C].
template <long PIXELS, long C, class Eps, class Momentum, bool RELU = false>
struct Norm {
    static constexpr long inputs = PIXELS * C, outputs = inputs, parameters = 2 * C, block = 1;
    static constexpr int tensors = 2;
    static constexpr bool winograd = false;
    // Maps are read by spans of whole pixels, a few vectors long so that additions need not wait for each other.
    static constexpr long SPAN = C * ceil_div(4 * WIDTH, C), VECTORS = SPAN / WIDTH, SUMMED = 256;
    static_assert(C % WIDTH == 0 && inputs % SPAN == 0, "channels that fill vectors, and whole spans");
    static constexpr long SUMS = 0, GRADIENTS = 2 * C, CENTRE = 4 * C, MEAN = 5 * C, INVERSE = 6 * C, SCALE = 7 * C,
                          each = 10 * C;  // a thread's numbers
    using Vector = typename Lanes<WIDTH>::type;
    static long work(long, long threads) { return threads * each; }
    static long beside(long) { return 2 * C; }

    static Vector at(const real* numbers, long v) { return Lanes<WIDTH>::load(numbers + v * WIDTH % C); }

    // Two sums of a thread's share for each channel into to [2][C]; terms(i, v, a, b) gives those of numbers from i on.
    template <class Terms>
    static void summed(Team team, long M, real* to, Terms terms) {
        double total[2][C] = {};
        const long end = team.last(M) * inputs;
        for (long i = team.first(M) * inputs; i < end;) {
            Vector sums[2][VECTORS] = {};
            for (const long stop = std::min(end, i + SUMMED * SPAN); i < stop; i += SPAN)
#pragma GCC unroll 8
                for (long v = 0; v < VECTORS; ++v) terms(i + v * WIDTH, v, sums[0][v], sums[1][v]);
            for (long v = 0; v < VECTORS; ++v)
                for (long lane = 0; lane < WIDTH; ++lane)
                    for (int s : {0, 1}) total[s][v * WIDTH % C + lane] += sums[s][v][lane];
        }
        for (long c = 0; c < 2 * C; ++c) to[c] = total[c / C][c % C];
    }
    // The sum of number `at` over the threads, who have met.
    static double over(Team team, const real* work, long at) {
        double sum = 0;
        for (long rank = 0; rank < team.size; ++rank) sum += work[rank * each + at];
        return sum;
    }

    static void forward(Team team, long M, const real* w, const real* in, real* out, real* work, real* running) {
        const double n = double(M) * PIXELS;
        real* own = work + team.rank * each;
        team.meet();  // the batch's first pixel is one thread's
        std::memcpy(own + CENTRE, in, sizeof(real) * C);
        summed(team, M, own + SUMS, [=](long i, long v, Vector& a, Vector& b) {
            const Vector x = Lanes<WIDTH>::load(in + i) - at(own + CENTRE, v);
            a += x, b += x * x;
        });
        team.meet();
        for (long c = 0; c < C; ++c) {
            const double off = over(team, work, SUMS + c) / n, mean = own[CENTRE + c] + off;
            const double variance = std::max(0.0, over(team, work, SUMS + C + c) / n - off * off);
            own[MEAN + c] = mean;
            own[INVERSE + c] = 1 / std::sqrt(variance + double(Eps::num) / Eps::den);
            own[SCALE + c] = w[c] * own[INVERSE + c];
            if (team.rank > 0) continue;
            constexpr double share = double(Momentum::num) / Momentum::den;
            running[c] += share * (mean - running[c]);
            running[C + c] += share * (variance * n / (n - 1) - running[C + c]);
        }
        std::memcpy(own + SCALE + C, w + C, sizeof(real) * C);  // the biases, before a step changes them
        of_share(team, M, [=](long i, long v) {
            const Vector y = of(own, Lanes<WIDTH>::load(in + i) - at(own + MEAN, v), v);
            Lanes<WIDTH>::store(out + i, RELU ? (y < 0 ? Vector{} : y) : y);
        });
    }
    // `din` may be `in`.
    template <class Sink>
    static void backward(Team team, long M, const real*, const real* in, const real*, const real* dout, real* din,
                         Sink sink, real* work, real*) {
        const double n = double(M) * PIXELS;
        real* own = work + team.rank * each;
        const auto above = [=](long i, long v, Vector x) {  // the gradient before the ReLU
            const Vector g = Lanes<WIDTH>::load(dout + i);
            return RELU ? (of(own, x, v) > 0 ? g : Vector{}) : g;
        };
        summed(team, M, own + GRADIENTS, [=](long i, long v, Vector& a, Vector& b) {
            const Vector x = Lanes<WIDTH>::load(in + i) - at(own + MEAN, v), g = above(i, v, x);
            a += g, b += g * x;
        });
        team.meet();
        real *mean = own + CENTRE, *slope = own + SCALE + 2 * C;  // what is taken off
        for (long c = 0; c < C; ++c) {
            mean[c] = over(team, work, GRADIENTS + c) / n;
            slope[c] = over(team, work, GRADIENTS + C + c) / n * own[INVERSE + c] * own[INVERSE + c];
        }
        of_share(team, M, [=](long i, long v) {
            const Vector x = Lanes<WIDTH>::load(in + i) - at(own + MEAN, v);
            Lanes<WIDTH>::store(din + i, at(own + SCALE, v) * (above(i, v, x) - at(mean, v) - x * at(slope, v)));
        });
        if (team.rank > 0) return;
        real *dw = sink.room(0, own + SUMS), *db = sink.room(C, own + SUMS + C);
        for (long c = 0; c < C; ++c) {
            dw[c] = n * slope[c] / own[INVERSE + c];
            db[c] = n * mean[c];
        }
        sink.done(0, C, dw, 0);
        sink.done(C, C, db, 1);
    }

private:
    static Vector of(const real* own, Vector x, long v) { return at(own + SCALE, v) * x + at(own + SCALE + C, v); }
    template <class Of>
    static void of_share(Team team, long M, Of of) {
        for (long i = team.first(M) * inputs; i < team.last(M) * inputs; i += SPAN)
#pragma GCC unroll 8
            for (long v = 0; v < VECTORS; ++v) of(i + v * WIDTH, v);
    }
};

// Layers one after another, of which each may write the gradient of its input over the input: so a map's takes the
// map's place, while that is in the cache.
template <class... Layers>
struct Series;
template <class Layer, class... Rest>
struct Series<Layer, Rest...> {
    using Next = Series<Rest...>;
    static constexpr bool last = sizeof...(Rest) == 0;
    static constexpr long inputs = Layer::inputs, outputs = Next::outputs ? Next::outputs : Layer::outputs;
    static constexpr long parameters = Layer::parameters + Next::parameters;
    static constexpr long block = std::max(Layer::block, Next::block);
    static constexpr int tensors = Layer::tensors + Next::tensors;
    static constexpr bool winograd = Layer::winograd || Next::winograd;
    static long own(long M, long threads) { return padded(Layer::work(M, threads)); }
    static long used(long M, long threads) { return own(M, threads) + (last ? 0 : padded(M * Layer::outputs)); }
    static long work(long M, long threads) { return used(M, threads) + Next::work(M, threads); }
    static long beside(long M) { return Layer::beside(M) + Next::beside(M); }

    static void forward(Team team, long M, const real* w, const real* in, real* out, real* work, real* beside) {
        real* to = last ? out : work + own(M, team.size);
        Layer::forward(team, M, w, in, to, work, beside);
        Next::forward(team, M, w + Layer::parameters, to, out, work + used(M, team.size), beside + Layer::beside(M));
    }
    template <class Sink>
    static void backward(Team team, long M, const real* w, const real* in, const real* out, const real* dout,
                         real* din, Sink sink, real* work, real* beside) {
        real* map = work + own(M, team.size);
        Next::backward(team, M, w + Layer::parameters, map, out, dout, map, sink.template after<Layer>(),
                       work + used(M, team.size), beside + Layer::beside(M));
        Layer::backward(team, M, w, in, nullptr, last ? dout : map, din, sink, work, beside);
    }
};
template <>
struct Series<> {
    static constexpr long inputs = 0, outputs = 0, parameters = 0, block = 1;
    static constexpr int tensors = 0;
    static constexpr bool winograd = false;
    static long work(long, long) { return 0; }
    static long beside(long) { return 0; }
    static void forward(Team, long, const real*, const real*, real*, real*, real*) {}
    template <class Sink>
    static void backward(Team, long, const real*, const real*, const real*, const real*, real*, Sink, real*, real*) {}
};

// relu(Branch + Shortcut), both Series from the same maps; a shortcut without layers is the identity.
template <class Branch, class Shortcut>
struct Residual {
    static constexpr bool identity = Shortcut::inputs == 0;
    static constexpr long inputs = Branch::inputs, outputs = Branch::outputs;
    static constexpr long parameters = Branch::parameters + Shortcut::parameters;
    static constexpr long block = std::max(Branch::block, Shortcut::block);
    static constexpr int tensors = Branch::tensors + Shortcut::tensors;
    static constexpr bool winograd = Branch::winograd || Shortcut::winograd;
    // The gradient of the sum, which first holds the shortcut's output; then that of the shortcut's input.
    static long maps(long M) { return padded(M * outputs) + (identity ? 0 : padded(M * inputs)); }
    static long work(long M, long threads) {
        return maps(M) + Branch::work(M, threads) + Shortcut::work(M, threads);
    }
    static long beside(long M) { return Branch::beside(M) + Shortcut::beside(M); }

    static void forward(Team team, long M, const real* w, const real* in, real* out, real* work, real* beside) {
        real* own = work + maps(M);
        Branch::forward(team, M, w, in, out, own, beside);
        Shortcut::forward(team, M, w + Branch::parameters, in, work, own + Branch::work(M, team.size),
                          beside + Branch::beside(M));
        const real* other = identity ? in : work;
        for (long i = team.first(M) * outputs; i < team.last(M) * outputs; ++i)
            out[i] = out[i] + other[i] < 0 ? real(0) : out[i] + other[i];
    }
    template <class Sink>
    static void backward(Team team, long M, const real* w, const real* in, const real* out, const real* dout,
                         real* din, Sink sink, real* work, real* beside) {
        real *sum = work, *other = work + padded(M * outputs), *own = work + maps(M);
        for (long i = team.first(M) * outputs; i < team.last(M) * outputs; ++i) sum[i] = out[i] > 0 ? dout[i] : 0;
        Branch::backward(team, M, w, in, nullptr, sum, din, sink, own, beside);
        Shortcut::backward(team, M, w + Branch::parameters, in, nullptr, sum, other, sink.template after<Branch>(),
                           own + Branch::work(M, team.size), beside + Branch::beside(M));
        const real* more = identity ? sum : other;
        for (long i = team.first(M) * inputs; i < team.last(M) * inputs; ++i) din[i] += more[i];
    }
};
