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
// Layers of one example each (convolutions, pools, activations) are taken example by example, so that maps stay in
// the cache; linear layers take the whole batch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ratio>
#include <type_traits>

using real = REAL;
using Code = std::conditional_t<sizeof(real) == 4, std::int32_t, std::int64_t>;  // as wide as a number

#if defined(__AVX512F__)
constexpr int BYTES = 64, REGISTERS = 32, MOST_VECTORS = 4;
#elif defined(__AVX__)
constexpr int BYTES = 32, REGISTERS = 16, MOST_VECTORS = 3;
#elif defined(__aarch64__)
constexpr int BYTES = 16, REGISTERS = 32, MOST_VECTORS = 4;
#else
constexpr int BYTES = 16, REGISTERS = 16, MOST_VECTORS = 3;
#endif
constexpr int WIDTH = BYTES / sizeof(real);  // numbers of a vector
constexpr long PANEL = 24 << 10;             // bytes of weights that stay in the first-level cache beside a map

constexpr long ceil_div(long a, long b) { return (a + b - 1) / b; }
constexpr long padded(long n) { return ceil_div(n, WIDTH) * WIDTH; }
constexpr int lanes(long n) {  // of the widest vector that n numbers fill
    int found = WIDTH;
    while (found > n) found /= 2;
    return found;
}

template <int n>
struct Lanes {
    typedef real type __attribute__((vector_size(n * sizeof(real)), aligned(sizeof(real)), may_alias));
    static type load(const real* at) { return *reinterpret_cast<const type*>(at); }
    static void store(real* at, type value) { *reinterpret_cast<type*>(at) = value; }
};

// n numbers as vectors; the last one is moved back to end with them, so it may repeat numbers of the one before.
template <long n>
struct Columns {
    static constexpr int width = lanes(n), count = ceil_div(n, width), repeated = count * width - n;
    using Vector = Lanes<width>;
    static constexpr long offset(int v) { return v + 1 < count ? v * width : n - width; }
    static typename Vector::type fresh() {  // 1 in the last vector where it does not repeat, else 0
        typename Vector::type mask{};
        for (int i = 0; i < width; ++i) mask[i] = i >= repeated;
        return mask;
    }
};

// ---------------------------------------------------------------- products

// a(r, o, k) = at[r row + o outer + k term], b(o, k, n) = at[o outer + k term + n]
struct Left {
    const real* at;
    long row, term, outer;
};
struct Right {
    const real* at;
    long term, outer;
};
enum class Into {
    Fresh,    // c[r][n]  = sum over o and k of a(r, o, k) b(o, k, n)
    Biased,   //            the same from bias[n] on
    More,     // c[r][n] += the sum, started from what is there
    Overlaid  // c[r][n] += the sum, where rows of c overlap
};

template <Into into, int R, long N>
[[gnu::noinline]] void tile(long outer, long inner, Left a, Right b, real* c, long row, const real* bias) {
    using Cut = Columns<N>;
    using Vector = typename Cut::Vector;
    typename Vector::type sums[R][Cut::count];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < Cut::count; ++v)
            sums[r][v] = into == Into::Biased ? Vector::load(bias + Cut::offset(v))
                         : into == Into::More ? Vector::load(c + r * row + Cut::offset(v))
                                              : typename Vector::type{};
    for (long o = 0; o < outer; ++o) {
        const real *left = a.at + o * a.outer, *right = b.at + o * b.outer;
        for (long k = 0; k < inner; ++k, left += a.term, right += b.term) {
            typename Vector::type factor[Cut::count];
#pragma GCC unroll 16
            for (int v = 0; v < Cut::count; ++v) factor[v] = Vector::load(right + Cut::offset(v));
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
                for (int v = 0; v < Cut::count; ++v) sums[r][v] += left[r * a.row] * factor[v];
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < Cut::count; ++v) {
            real* at = c + r * row + Cut::offset(v);
            auto sum = sums[r][v];
            if (into == Into::Overlaid) {
                if (v + 1 == Cut::count && Cut::repeated) sum *= Cut::fresh();
                sum += Vector::load(at);
            }
            Vector::store(at, sum);
        }
}

// Rows of a tile of N columns: what the registers hold.
template <long N>
constexpr int tile_rows() {
    return (REGISTERS - 1 - Columns<N>::count) / Columns<N>::count;
}

template <Into into, int R, long N>
void some_rows(long& count, long outer, long inner, Left& a, Right b, real*& c, long row, const real* bias) {
    for (; count >= R; count -= R, a.at += R * a.row, c += R * row) tile<into, R, N>(outer, inner, a, b, c, row, bias);
}

template <Into into, long ROWS, long N>  // ROWS = 0: `count` of them, known when it runs
void block(long count, long outer, long inner, Left a, Right b, real* c, long row, const real* bias) {
    constexpr int most = tile_rows<N>();
    if constexpr (ROWS > 0) {
        constexpr long tiles = ceil_div(ROWS, most), each = ceil_div(ROWS, tiles), last = ROWS % each;
        some_rows<into, each, N>(count, outer, inner, a, b, c, row, bias);
        if constexpr (last > 0) some_rows<into, last, N>(count, outer, inner, a, b, c, row, bias);
    } else {
        some_rows<into, most, N>(count, outer, inner, a, b, c, row, bias);
        if constexpr (most > 4) some_rows<into, 4, N>(count, outer, inner, a, b, c, row, bias);
        if constexpr (most > 2) some_rows<into, 2, N>(count, outer, inner, a, b, c, row, bias);
        some_rows<into, 1, N>(count, outer, inner, a, b, c, row, bias);
    }
}

template <Into into, long ROWS, long N>
void product(long count, long outer, long inner, Left a, Right b, real* c, long row, const real* bias = nullptr) {
    constexpr long vectors = ceil_div(N, lanes(N)), blocks = ceil_div(vectors, MOST_VECTORS);
    constexpr long each = ceil_div(vectors, blocks) * lanes(N), whole = N / each, last = N % each;
    long at = 0;
    auto next = [&](auto width) {
        constexpr long n = decltype(width)::value;
        block<into, ROWS, n>(count, outer, inner, a, {b.at + at, b.term, b.outer}, c + at, row, bias ? bias + at : bias);
        at += n;
    };
    for (long i = 0; i < whole; ++i) next(std::integral_constant<long, each>{});
    if constexpr (last > 0) next(std::integral_constant<long, last>{});
}

// y[r][o] = bias[o] + x[r] . w[o], both with K numbers that follow one another
template <int R, int O, long K>
[[gnu::noinline]] void dots(const real* x, const real* w, const real* bias, real* y, long row) {
    using Cut = Columns<K>;
    using Vector = typename Cut::Vector;
    typename Vector::type sums[R][O] = {};
    auto add = [&](long k, auto weight) {
        typename Vector::type left[R];
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) left[r] = Vector::load(x + r * K + k) * weight;
#pragma GCC unroll 16
        for (int o = 0; o < O; ++o) {
            const auto factor = Vector::load(w + o * K + k);
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) sums[r][o] += left[r] * factor;
        }
    };
    constexpr long even = K / Cut::width * Cut::width;
    for (long k = 0; k < even; k += Cut::width) add(k, real(1));
    if constexpr (even < K) add(K - Cut::width, Cut::fresh());
    for (int r = 0; r < R; ++r)
        for (int o = 0; o < O; ++o) {
            real part[Cut::width];
            std::memcpy(part, &sums[r][o], sizeof part);
            for (int half = Cut::width / 2; half > 0; half /= 2)
                for (int i = 0; i < half; ++i) part[i] += part[i + half];
            y[r * row + o] = bias[o] + part[0];
        }
}

// ---------------------------------------------------------------- layers of one example each

template <long H, long W, long C, long O, long K, long S, long P>
struct Conv {
    static constexpr long PH = H + 2 * P, PW = W + 2 * P, OH = (PH - K) / S + 1, OW = (PW - K) / S + 1;
    static constexpr long SPAN = K * C;       // numbers under a pixel in one row of the kernel
    static constexpr long STRIDE = padded(O);  // of the turned weights [K][SPAN][O] and of their sums
    static constexpr long inputs = H * W * C, outputs = OH * OW * O, parameters = O * K * SPAN + O;
    static constexpr long kept = P ? PH * PW * C : 0, ready = K * SPAN * STRIDE, sums = K * SPAN * STRIDE + STRIDE;
    static constexpr long scratch = P ? PH * PW * C : 0;
    static constexpr bool reads_input = P == 0, reads_output = false;

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
                if (k == 0) product<Into::Biased, OW, O>(OW, rows, SPAN, a, b, to, O, bias);
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
    static void finish(const real* sums, real* dw) {
        for (long k = 0; k < K * SPAN; ++k)
            for (long o = 0; o < O; ++o) dw[o * K * SPAN + k] = sums[k * STRIDE + o];
        std::memcpy(dw + O * K * SPAN, sums + K * SPAN * STRIDE, sizeof(real) * O);
    }
};

// What layers without parameters have in common.
template <long IN, long OUT, bool INPUT = false, bool OUTPUT = false, long KEPT = 0>
struct Plain {
    static constexpr long inputs = IN, outputs = OUT, parameters = 0, kept = KEPT, ready = 0, sums = 0, scratch = 0;
    static constexpr bool reads_input = INPUT, reads_output = OUTPUT;
    static void prepare(const real*, real*) {}
    static void finish(const real*, real*) {}
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

// x (1 + alpha mean of squares over a K x K window)^-3/4, Caffe's normalisation within channels; Alpha is a std::ratio.
template <long H, long W, long C, long K, class Alpha>
struct WithinChannel : Plain<H * W * C, H * W * C, true, false, H * W * C> {
    static constexpr long N = H * W * C;
    static constexpr real share = real(Alpha::num) / Alpha::den / (K * K);  // of one square in the scale

    static real root(real scale) { return 1 / std::sqrt(scale * std::sqrt(scale)); }  // scale^-3/4
    static void forward(const real*, const real*, const real* in, real* out, real* scale) {
        std::fill(scale, scale + N, real(1));
        windows<H, W, K, 1, K / 2, H, W>([=](long to, long from, long, long) {
            for (long c = 0; c < C; ++c) scale[to * C + c] += share * in[from * C + c] * in[from * C + c];
        });
        for (long i = 0; i < N; ++i) out[i] = in[i] * root(scale[i]);
    }
    static void backward(const real*, const real* in, const real*, const real* scale, const real* dout, real* din,
                         real*, real*) {
        std::memset(din, 0, sizeof(real) * N);
        windows<H, W, K, 1, K / 2, H, W>([=](long to, long from, long, long) {
            for (long c = 0; c < C; ++c) {
                const long i = to * C + c;
                din[from * C + c] -= dout[i] * in[i] * root(scale[i]) / scale[i];
            }
        });
        for (long i = 0; i < N; ++i) din[i] = real(1.5) * share * in[i] * din[i] + dout[i] * root(scale[i]);
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

// ---------------------------------------------------------------- composition

// Layers of one example each. Kept are, example by example, what a backward pass reads; the rest is overwritten.
template <class... Layers>
struct Chain {
    static constexpr long parameters = 0, kept = 0, ready = 0, sums = 0, scratch = 0;
    static constexpr bool reads_input = true;  // what follows may
    static void prepare(const real*, real*) {}
    static void forward(const real*, const real*, const real*, real*, real*, real*) {}
    static void backward(const real*, const real*, const real*, const real*, real*, real*, real*) {}
    static void finish(const real*, real*) {}
};

template <class Layer, class... Rest>
struct Chain<Layer, Rest...> {
    using Next = Chain<Rest...>;
    static constexpr bool last = sizeof...(Rest) == 0, keeps = !last && (Layer::reads_output || Next::reads_input);
    static constexpr bool reads_input = Layer::reads_input;
    static constexpr long parameters = Layer::parameters + Next::parameters;
    static constexpr long own = padded(Layer::kept), map = last ? 0 : padded(Layer::outputs);
    static constexpr long kept = own + (keeps ? map : 0) + Next::kept;
    static constexpr long ready = padded(Layer::ready) + Next::ready, sums = padded(Layer::sums) + Next::sums;
    static constexpr long scratch = padded(Layer::scratch) + map + Next::scratch;

    static void prepare(const real* w, real* ready) {
        Layer::prepare(w, ready);
        Next::prepare(w + Layer::parameters, ready + padded(Layer::ready));
    }
    static void forward(const real* w, const real* ready, const real* in, real* out, real* kept, real* scratch) {
        real* to = last ? out : keeps ? kept + own : scratch + padded(Layer::scratch);
        Layer::forward(w, ready, in, to, kept);
        Next::forward(w + Layer::parameters, ready + padded(Layer::ready), to, out, kept + own + (keeps ? map : 0),
                      scratch + padded(Layer::scratch) + map);
    }
    // `out` and its gradient `dout` are the last layer's; a map's gradient lies in the scratch.
    static void backward(const real* w, const real* in, const real* out, const real* kept, const real* dout,
                         real* din, real* scratch, real* sums) {
        const real* mine = last ? out : kept + own;  // read only where it was kept
        const real* above = dout;
        if constexpr (!last) {
            real* gradient = scratch + padded(Layer::scratch);
            Next::backward(w + Layer::parameters, mine, out, kept + own + (keeps ? map : 0), dout, gradient,
                           scratch + padded(Layer::scratch) + map, sums + padded(Layer::sums));
            above = gradient;
        }
        if (din || Layer::parameters) Layer::backward(w, in, mine, kept, above, din, scratch, sums);
    }
    static void finish(const real* sums, real* dw) {
        Layer::finish(sums, dw);
        Next::finish(sums + padded(Layer::sums), dw + Layer::parameters);
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

// The same for a batch, as one of Rows.
template <class... Layers>
struct Pictures {
    using All = Chain<Layers...>;
    static constexpr long inputs = Ends<Layers...>::inputs, outputs = Ends<Layers...>::outputs;
    static constexpr long parameters = All::parameters;
    static long work(long M) { return All::ready + All::sums + All::scratch + M * All::kept; }

    static void forward(long M, const real* w, const real* in, real* out, real* work) {
        real *ready = work, *scratch = ready + All::ready + All::sums, *kept = scratch + All::scratch;
        All::prepare(w, ready);
        for (long m = 0; m < M; ++m)
            All::forward(w, ready, in + m * inputs, out + m * outputs, kept + m * All::kept, scratch);
    }
    static void backward(long M, const real* w, const real* in, const real* out, const real* dout, real* din,
                         real* dw, real* work) {
        real *sums = work + All::ready, *scratch = sums + All::sums, *kept = scratch + All::scratch;
        std::memset(sums, 0, sizeof(real) * All::sums);
        for (long m = 0; m < M; ++m)
            All::backward(w, in + m * inputs, out + m * outputs, kept + m * All::kept, dout + m * outputs,
                          din ? din + m * inputs : nullptr, scratch, sums);
        All::finish(sums, dw);
    }
};

template <long IN, long OUT>
struct Linear {
    static constexpr long inputs = IN, outputs = OUT, parameters = OUT * IN + OUT;
    static long work(long) { return 0; }

    template <int R, int O>
    static void some_rows(long& m, long M, const real* w, const real* in, real* out) {
        const real* bias = w + OUT * IN;
        for (; m + R <= M; m += R) {
            long o = 0;
            for (; o + O <= OUT; o += O) dots<R, O, IN>(in + m * IN, w + o * IN, bias + o, out + m * OUT + o, OUT);
            for (; o < OUT; ++o) dots<R, 1, IN>(in + m * IN, w + o * IN, bias + o, out + m * OUT + o, OUT);
        }
    }
    static void forward(long M, const real* w, const real* in, real* out, real*) {
        long m = 0;
        if constexpr (REGISTERS > 16) some_rows<4, 6>(m, M, w, in, out);
        some_rows<2, REGISTERS / 4>(m, M, w, in, out);
        some_rows<1, 8>(m, M, w, in, out);
    }
    // Some outputs at a time: their weights are read and their gradients written while the cache holds both.
    static void backward(long M, const real* w, const real* in, const real*, const real* dout, real* din, real* dw,
                         real*) {
        const long together = M < 8 ? 8 : 64;
        if (din) std::memset(din, 0, sizeof(real) * M * IN);
        for (long o = 0; o < OUT; o += together) {
            const long some = std::min(together, OUT - o);
            if (din) product<Into::More, 0, IN>(M, 1, some, {dout + o, OUT, 1, 0}, {w + o * IN, IN, 0}, din, IN);
            product<Into::Fresh, 0, IN>(some, 1, M, {dout + o, 1, OUT, 0}, {in, IN, 0}, dw + o * IN, IN);
        }
        static const real one = 1;
        product<Into::Fresh, 1, OUT>(1, 1, M, {&one, 0, 0, 0}, {dout, OUT, 0}, dw + OUT * IN, OUT);
    }
};

// The batch through all layers, its mean cross-entropy, and back.
template <class... Layers>
struct Rows {
    static constexpr long parameters = 0;
    static long work(long) { return 0; }
    template <long CLASSES>
    static double run(long M, const real*, real*, const real* logits, real* dlogits, const std::int64_t* targets,
                      real*) {
        double loss = 0;
        for (long m = 0; m < M; ++m, logits += CLASSES, dlogits += CLASSES) {
            const real top = *std::max_element(logits, logits + CLASSES);
            real sum = 0;
            for (long c = 0; c < CLASSES; ++c) sum += dlogits[c] = std::exp(logits[c] - top);
            loss += std::log(sum) + top - logits[targets[m]];
            for (long c = 0; c < CLASSES; ++c) dlogits[c] = (dlogits[c] / sum - (c == targets[m])) / M;
        }
        return loss / M;
    }
};

template <class Layer, class... Rest>
struct Rows<Layer, Rest...> {
    using Next = Rows<Rest...>;
    static constexpr long inputs = Layer::inputs, outputs = Ends<Layer, Rest...>::outputs;
    static constexpr long parameters = Layer::parameters + Next::parameters;
    static long work(long M) { return padded(Layer::work(M)) + 2 * padded(M * Layer::outputs) + Next::work(M); }
    template <long CLASSES>
    static double run(long M, const real* w, real* dw, const real* in, real* din, const std::int64_t* targets,
                      real* work) {
        real *out = work + padded(Layer::work(M)), *dout = out + padded(M * Layer::outputs);
        Layer::forward(M, w, in, out, work);
        const double loss = Next::template run<CLASSES>(M, w + Layer::parameters, dw + Layer::parameters, out, dout,
                                                        targets, dout + padded(M * Layer::outputs));
        Layer::backward(M, w, in, out, dout, din, dw, work);
        return loss;
    }
};

#ifdef PLAN
using Plan = PLAN;

extern "C" long parameters() { return Plan::parameters; }
extern "C" long work(long examples) { return Plan::work(examples); }  // numbers of scratch memory, aligned to BYTES

// Mean cross-entropy of `examples` pictures [h][w][channels] at w [parameters]; its gradient into dw [parameters].
extern "C" double gradient(const real* w, real* dw, const real* pictures, const std::int64_t* targets, long examples,
                           real* work) {
    return Plan::run<Plan::outputs>(examples, w, dw, pictures, nullptr, targets, work);
}
#endif
