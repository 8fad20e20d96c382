// What becomes of a gradient, and layers that take one example each: forward, backward, and what they keep between.
#pragma once

#include <ratio>

#include "native_products.h"

// ---------------------------------------------------------------- what becomes of a gradient

// Written down, at the place of its parameters.
struct Write {
    real* dw;
    template <class Layer>
    Write after() const { return {dw + Layer::parameters}; }
    real* room(long at, real*) const { return dw + at; }
    void done(long, long, const real*, int) const {}
};

// velocity = momentum velocity + inner (gradient + decay from), to = from - outer velocity; one rule for each tensor.
struct Rule {
    real inner, outer, decay;
};

// Used at once for a step of the parameters, while both are in the cache; `room` is for what is not used yet. `from` and
// `to` are one vector or lie apart.
struct Step {
    const real* from;
    real *to, *velocity;
    const Rule* rules;
    real momentum;
    template <class Layer>
    Step after() const {
        constexpr long n = Layer::parameters;
        return {from + n, to + n, velocity + n, rules + Layer::tensors, momentum};
    }
    real* room(long, real* block) const { return block; }
    void done(long at, long n, const real* __restrict gradient, int tensor) const {
        const real* x = from + at;
        real *y = to + at, *__restrict v = velocity + at;
        const Rule rule = rules[tensor];
        if (momentum == 0)  // nothing to remember
#pragma GCC ivdep
            for (long i = 0; i < n; ++i) y[i] = x[i] - rule.outer * rule.inner * (gradient[i] + rule.decay * x[i]);
        else
#pragma GCC ivdep
            for (long i = 0; i < n; ++i) {
                v[i] = momentum * v[i] + rule.inner * (gradient[i] + rule.decay * x[i]);
                y[i] = x[i] - rule.outer * v[i];
            }
    }
};

// ---------------------------------------------------------------- layers of one example each

template <long H, long W, long C, long O, long K, long S, long P, bool BIAS = true>
struct Direct {
    static constexpr long PH = H + 2 * P, PW = W + 2 * P, OH = (PH - K) / S + 1, OW = (PW - K) / S + 1;
    static constexpr long SPAN = K * C;       // numbers under a pixel in one row of the kernel
    static constexpr long STRIDE = padded(O);  // of the turned weights [K][SPAN][O] and of their sums
    static constexpr long inputs = H * W * C, outputs = OH * OW * O, parameters = O * K * SPAN + BIAS * O;
    static constexpr long kept = P ? PH * PW * C : 0, ready = K * SPAN * STRIDE, sums = K * SPAN * STRIDE + STRIDE;
    static constexpr long scratch = P ? PH * PW * C : 0;
    static constexpr int tensors = 1 + BIAS;
    static constexpr bool reads_input = P == 0, reads_output = false, together = false;
    static constexpr long block = 1;

    static void prepare(const real* w, real* turned) {
        for (long k = 0; k < K * SPAN; ++k)
            for (long o = 0; o < O; ++o) turned[k * STRIDE + o] = w[o * K * SPAN + k];
    }
    static void forward(const real* w, const real* turned, const real* in, real* out, real* kept) {
        const real* source = in;
        if constexpr (P > 0) {
            std::memset(kept, 0, sizeof(real) * PH * PW * C);
            for (long y = 0; y < H; ++y)
                std::memcpy(kept + ((y + P) * PW + P) * C, in + y * W * C, sizeof(real) * W * C);
            source = kept;
        }
        constexpr long fitting = PANEL / (SPAN * STRIDE * sizeof(real)), group = std::clamp(fitting, 1l, K);
        const real* bias = w + O * K * SPAN;
        for (long k = 0; k < K; k += group)
            for (long y = 0; y < OH; ++y) {
                const Left a{source + (y * S + k) * PW * C, S * C, 1, PW * C};
                const Right b{turned + k * SPAN * STRIDE, STRIDE, SPAN * STRIDE};
                const long rows = std::min(group, K - k);
                real* to = out + y * OW * O;
                if (k == 0) product<BIAS ? Into::Biased : Into::Fresh, OW, O>(OW, rows, SPAN, a, b, to, O, bias);
                else product<Into::More, OW, O>(OW, rows, SPAN, a, b, to, O);
            }
    }
    static void backward(const real* w, const real* in, const real*, const real* kept, const real* dout, real* din,
                         real* scratch, real* sums) {
        const real* source = P ? kept : in;
        for (long k = 0; k < K; ++k)
            product<Into::More, SPAN, O>(SPAN, OH, OW, {source + k * PW * C, 1, S * C, S * PW * C},
                                         {dout, O, OW * O}, sums + k * SPAN * STRIDE, STRIDE);
        static const real one = 1;
        if constexpr (BIAS)
            product<Into::More, 1, O>(1, 1, OH * OW, {&one, 0, 0, 0}, {dout, O, 0}, sums + K * SPAN * STRIDE, STRIDE);
        if (!din) return;
        real* target = P ? scratch : din;
        std::memset(target, 0, sizeof(real) * PH * PW * C);
        for (long k = 0; k < K; ++k)
            for (long y = 0; y < OH; ++y)
                product<Into::Overlaid, OW, SPAN>(OW, 1, O, {dout + y * OW * O, O, 1, 0},
                                                  {w + k * SPAN, K * SPAN, 0}, target + (y * S + k) * PW * C, S * C);
        if constexpr (P > 0)
            for (long y = 0; y < H; ++y)
                std::memcpy(din + y * W * C, target + ((y + P) * PW + P) * C, sizeof(real) * W * C);
    }
    template <class Sink>
    static void finish(const real* sums, real* block, Sink sink) {  // `block` is as large as the turned weights
        real* dw = sink.room(0, block);
        for (long k = 0; k < K * SPAN; ++k)
            for (long o = 0; o < O; ++o) dw[o * K * SPAN + k] = sums[k * STRIDE + o];
        sink.done(0, O * K * SPAN, dw, 0);
        if constexpr (!BIAS) return;
        real* db = sink.room(O * K * SPAN, block);
        std::memcpy(db, sums + K * SPAN * STRIDE, sizeof(real) * O);
        sink.done(O * K * SPAN, O, db, 1);
    }
};

// What layers without parameters have in common.
template <long IN, long OUT, bool INPUT = false, bool OUTPUT = false, long KEPT = 0>
struct Plain {
    static constexpr long inputs = IN, outputs = OUT, parameters = 0, kept = KEPT, ready = 0, sums = 0, scratch = 0;
    static constexpr int tensors = 0;
    static constexpr bool reads_input = INPUT, reads_output = OUTPUT, together = false;
    static constexpr long block = 1;
    static void prepare(const real*, real*) {}
    template <class Sink>
    static void finish(const real*, real*, Sink) {}
};

// Calls each(output pixel, input pixel, place in the window, pixels of the window with padding).
template <long H, long W, long K, long S, long P, long OH, long OW, class Each>
void windows(Each each) {
    for (long oy = 0; oy < OH; ++oy)
        for (long ox = 0; ox < OW; ++ox) {
            const long top = oy * S - P, left = ox * S - P;
            const long size = (std::min(top + K, H + P) - top) * (std::min(left + K, W + P) - left);
            for (long y = std::max(top, 0l); y < std::min(top + K, H); ++y)
                for (long x = std::max(left, 0l); x < std::min(left + K, W); ++x)
                    each(oy * OW + ox, y * W + x, (y - top) * K + x - left, size);
        }
}

template <long H, long W, long C, long K, long S, long P, long OH, long OW>
struct MaxPool : Plain<H * W * C, OH * OW * C, false, false, OH * OW * C> {
    static void forward(const real*, const real*, const real* in, real* out, real* kept) {
        Code* codes = reinterpret_cast<Code*>(kept);
        std::fill(out, out + OH * OW * C, -HUGE_VAL);
        windows<H, W, K, S, P, OH, OW>([=](long to, long from, Code place, long) {
            for (long c = 0; c < C; ++c) {
                const real value = in[from * C + c], best = out[to * C + c];
                const bool more = (value > best) | (value != value);  // the first of equal ones, and what is no number
                out[to * C + c] = more ? value : best;
                codes[to * C + c] = more ? place : codes[to * C + c];
            }
        });
    }
    static void backward(const real*, const real*, const real*, const real* kept, const real* dout, real* din, real*,
                         real*) {
        const Code* codes = reinterpret_cast<const Code*>(kept);
        std::memset(din, 0, sizeof(real) * H * W * C);
        windows<H, W, K, S, P, OH, OW>([=](long to, long from, Code place, long) {
            for (long c = 0; c < C; ++c)
                din[from * C + c] += codes[to * C + c] == place ? dout[to * C + c] : real(0);
        });
    }
};

template <long H, long W, long C, long K, long S, long P, long OH, long OW>
struct AveragePool : Plain<H * W * C, OH * OW * C> {
    static void forward(const real*, const real*, const real* in, real* out, real*) {
        std::memset(out, 0, sizeof(real) * OH * OW * C);
        windows<H, W, K, S, P, OH, OW>([=](long to, long from, long, long size) {
            for (long c = 0; c < C; ++c) out[to * C + c] += in[from * C + c] * (real(1) / size);
        });
    }
    static void backward(const real*, const real*, const real*, const real*, const real* dout, real* din, real*,
                         real*) {
        std::memset(din, 0, sizeof(real) * H * W * C);
        windows<H, W, K, S, P, OH, OW>([=](long to, long from, long, long size) {
            for (long c = 0; c < C; ++c) din[from * C + c] += dout[to * C + c] * (real(1) / size);
        });
    }
};

template <long N>
struct Relu : Plain<N, N, false, true> {
    static void forward(const real*, const real*, const real* in, real* out, real*) {
        for (long i = 0; i < N; ++i) out[i] = in[i] < 0 ? real(0) : in[i];
    }
    static void backward(const real*, const real*, const real* out, const real*, const real* dout, real* din, real*,
                         real*) {
        for (long i = 0; i < N; ++i) din[i] = out[i] > 0 ? dout[i] : real(0);
    }
};

// As the ratio of two polynomials, which a compiler can take many at a time; in double precision the library's.
// Coefficients: Eigen, Core/MathFunctionsImpl.h (ptanh_float). Beyond the bound it is 1 to the last bit.
inline float tanh_of(float x) {
    const float z = x > 7.90531110763549805f ? 7.90531110763549805f : x < -7.90531110763549805f ? -7.90531110763549805f : x;
    const float y = z * z;
    float p = -2.76076847742355e-16f;
    for (const float next : {2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f, 1.48572235717979e-05f,
                             6.37261928875436e-04f, 4.89352455891786e-03f})
        p = p * y + next;
    float q = 1.19825839466702e-06f;
    for (const float next : {1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f}) q = q * y + next;
    return z * p / q;
}
inline double tanh_of(double x) { return std::tanh(x); }

template <long N>
struct Tanh : Plain<N, N, false, true> {
    static void forward(const real*, const real*, const real* in, real* out, real*) {
        for (long i = 0; i < N; ++i) out[i] = tanh_of(in[i]);
    }
    static void backward(const real*, const real*, const real* out, const real*, const real* dout, real* din, real*,
                         real*) {
        for (long i = 0; i < N; ++i) din[i] = dout[i] * (1 - out[i] * out[i]);
    }
};

// Sums over K x K windows of a map, clipped at its borders: along rows, then of rows.
template <long H, long W, long C, long K>
struct Windowed {
    static void along_rows(const real* in, real* out) {
        for (long y = 0; y < H; ++y, in += W * C, out += W * C) added<W, C>(in, out);
    }
    static void of_rows(const real* in, real* out) { added<H, W * C>(in, out); }

private:
    // out[i] = the sum of those of in[i - K/2], ..., in[i + K/2] that there are, each of N numbers
    template <long COUNT, long N>
    static void added(const real* in, real* out) {
        for (long i = 0; i < COUNT; ++i) {
            const long from = std::max(0l, i - K / 2), end = std::min(COUNT, i - K / 2 + K);
            real* to = out + i * N;
            std::memcpy(to, in + from * N, sizeof(real) * N);
            for (long j = from + 1; j < end; ++j)
                for (long n = 0; n < N; ++n) to[n] += in[j * N + n];
        }
    }
};

// x (1 + alpha mean of squares over a K x K window)^-3/4, Caffe's normalisation within channels; Alpha is a std::ratio.
// Kept: the scale in brackets, and its power.
template <long H, long W, long C, long K, class Alpha>
struct WithinChannel : Plain<H * W * C, H * W * C, true, false, 2 * H * W * C> {
    static constexpr long N = H * W * C, scratch = 2 * N;
    static constexpr real share = real(Alpha::num) / Alpha::den / (K * K);  // of one square in the scale
    using Sums = Windowed<H, W, C, K>;

    static void forward(const real*, const real*, const real* __restrict in, real* __restrict out,
                        real* __restrict scale) {
        real* __restrict power = scale + N;
        for (long i = 0; i < N; ++i) power[i] = share * in[i] * in[i];
        Sums::along_rows(power, out);
        Sums::of_rows(out, scale);
        for (long i = 0; i < N; ++i) {
            scale[i] += 1;
            power[i] = 1 / std::sqrt(scale[i] * std::sqrt(scale[i]));
            out[i] = in[i] * power[i];
        }
    }
    static void backward(const real*, const real* in, const real*, const real* scale, const real* dout, real* din,
                         real* scratch, real*) {
        const real* power = scale + N;
        real *__restrict part = scratch, *__restrict rows = scratch + N;  // what each scale's gradient is made of
        for (long i = 0; i < N; ++i) part[i] = dout[i] * in[i] * power[i] / scale[i];
        Sums::along_rows(part, rows);
        Sums::of_rows(rows, part);
        for (long i = 0; i < N; ++i) din[i] = dout[i] * power[i] - real(1.5) * share * in[i] * part[i];
    }
};

// [pixels][channels] becomes [channels][pixels], the order in which torch flattens.
template <long PIXELS, long C>
struct Flatten : Plain<PIXELS * C, PIXELS * C> {
    static void forward(const real*, const real*, const real* in, real* out, real*) {
        for (long p = 0; p < PIXELS; ++p)
            for (long c = 0; c < C; ++c) out[c * PIXELS + p] = in[p * C + c];
    }
    static void backward(const real*, const real*, const real*, const real*, const real* dout, real* din, real*,
                         real*) {
        for (long p = 0; p < PIXELS; ++p)
            for (long c = 0; c < C; ++c) din[p * C + c] = dout[c * PIXELS + p];
    }
};

// Every S-th pixel along both axes, and O - C channels of zeros: a shortcut without parameters.
template <long H, long W, long C, long O, long S>
struct Subsample : Plain<H * W * C, ceil_div(H, S) * ceil_div(W, S) * O> {
    static constexpr long OH = ceil_div(H, S), OW = ceil_div(W, S);
    static void forward(const real*, const real*, const real* in, real* out, real*) {
        std::memset(out, 0, sizeof(real) * OH * OW * O);
        for (long p = 0; p < OH * OW; ++p)
            std::memcpy(out + p * O, in + (p / OW * S * W + p % OW * S) * C, sizeof(real) * C);
    }
    static void backward(const real*, const real*, const real*, const real*, const real* dout, real* din, real*,
                         real*) {
        std::memset(din, 0, sizeof(real) * H * W * C);
        for (long p = 0; p < OH * OW; ++p)
            std::memcpy(din + (p / OW * S * W + p % OW * S) * C, dout + p * O, sizeof(real) * C);
    }
};
