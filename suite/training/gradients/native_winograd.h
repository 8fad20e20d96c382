// Convolutions of stride 1 by fewer multiplications: Winograd's F(4x4, 5x5) and F(4x4, 3x3).
//
// An output tile of 4 x 4 pixels comes of a patch of N x N input pixels, N = K + 3, as
//
//     y = A' ((G g G') . (B' d B)) A        per channel of the input and of the output, summed over the former
//
// where d [N][N] is the patch, g [K][K] the kernel, y [4][4] the tile, . the product number by number, and X' the
// transpose of X. It takes N^2 multiplications where a direct sum takes 16 K^2: 64 for 400 (K = 5), 36 for 144 (K = 3).
// The gradients are those of this very expression, so they need the same three matrices and nothing else:
//
//     dg = G' ((B' d B) . (A dy A')) G,   summed over tiles and examples before G, which is taken once an update
//     dd = B ((G g G') . (A dy A')) B',   added where patches overlap
//
// The matrices follow from N - 1 points and infinity (Toom-Cook): 0 and, for K = 3, +-5/8 and +-3/2, for K = 5, +-1, +-2
// and +-1/2. A and G take values of polynomials at the points, and B' is the transpose of what interpolates. Transforms:
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016. Construction: Barabasz et al., "Error
// Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020. Of the points tried those
// are kept that round least: for K = 3 half as much as +-1 and +-2, for K = 5 none rounds less.
#pragma once

#include "native_layers.h"

// ---------------------------------------------------------------- matrices

// The points: 0, then each of these and its negative, then infinity.
template <int K>
struct Pairs;
template <>
struct Pairs<3> {
    static constexpr double at[] = {0.625, 1.5};
};
template <>
struct Pairs<5> {
    static constexpr double at[] = {1, 2, 0.5};
};

// Row i of each matrix belongs to point i. a: powers of the point, [1 p p^2 p^3]. g: its powers over the product of its
// distances from the others. b: coefficients of the polynomial that has all other points as roots. Infinity: the last
// power of a and g, and the polynomial with every point as a root.
template <int K>
struct Matrices {
    static constexpr int N = K + 3;
    double a[N][4]{}, g[N][K]{}, b[N][N]{};

    constexpr Matrices() {
        double point[N - 1]{};
        for (int i = 1; i < N - 1; ++i) point[i] = Pairs<K>::at[(i - 1) / 2] * (i % 2 ? 1 : -1);
        for (int i = 0; i < N - 1; ++i) {
            double distances = 1, power = 1;
            for (int j = 0; j < N - 1; ++j)
                if (j != i) distances *= point[i] - point[j];
            for (int j = 0; j < K || j < 4; ++j, power *= point[i]) {
                if (j < 4) a[i][j] = power;
                if (j < K) g[i][j] = power / distances;
            }
        }
        a[N - 1][3] = g[N - 1][K - 1] = 1;
        for (int i = 0; i < N; ++i) {
            b[i][0] = 1;
            for (int j = 0; j < N - 1; ++j)
                if (j != i)  // times (x - point)
                    for (int k = N - 1; k >= 0; --k) b[i][k] = (k ? b[i][k - 1] : 0) - point[j] * b[i][k];
        }
    }
};
template <int K>
constexpr Matrices<K> matrices;

template <int K>
struct A {
    static constexpr int rows = K + 3, columns = 4;
    static constexpr double at(int i, int j) { return matrices<K>.a[i][j]; }
};
template <int K>
struct G {
    static constexpr int rows = K + 3, columns = K;
    static constexpr double at(int i, int j) { return matrices<K>.g[i][j]; }
};
template <int K>
struct B {  // B' of the formulas
    static constexpr int rows = K + 3, columns = K + 3;
    static constexpr double at(int i, int j) { return matrices<K>.b[i][j]; }
};

// sum += factor x, where known factors of 0 and sums of nothing yet cost nothing.
template <class Vector>
[[gnu::always_inline]] inline void add(Vector& sum, bool& begun, double factor, Vector x) {
    if (factor == 0) return;
    sum = begun ? sum + real(factor) * x : real(factor) * x;
    begun = true;
}

// y = M x. The rows of a point and of its negative are e + o and e - o, of even columns and of odd ones.
template <class M>
struct Times {
    static constexpr int in = M::columns, out = M::rows;
    template <class Vector>
    [[gnu::always_inline]] static inline void of(const Vector* x, Vector* y) {
#pragma GCC unroll 8
        for (int i = 0; i < out; i += i == 0 ? 1 : 2) {
            Vector even{}, odd{};
            bool some = false, others = false;
#pragma GCC unroll 8
            for (int j = 0; j < in; ++j)
                j % 2 ? add(odd, others, M::at(i, j), x[j]) : add(even, some, M::at(i, j), x[j]);
            if (i > 0 && i + 1 < out) y[i] = even + odd, y[i + 1] = even - odd;
            else y[i] = some && others ? even + odd : some ? even : odd;
        }
    }
};

// y = M' x, by the sums and differences of what belongs to a point and to its negative.
template <class M>
struct TransposedTimes {
    static constexpr int in = M::rows, out = M::columns;
    template <class Vector>
    [[gnu::always_inline]] static inline void of(const Vector* x, Vector* y) {
        Vector sums[in], differences[in];
#pragma GCC unroll 8
        for (int i = 1; i + 1 < in; i += 2) sums[i] = x[i] + x[i + 1], differences[i] = x[i] - x[i + 1];
#pragma GCC unroll 8
        for (int j = 0; j < out; ++j) {
            bool begun = false;
            add(y[j], begun, M::at(0, j), x[0]);
#pragma GCC unroll 8
            for (int i = 1; i + 1 < in; i += 2) add(y[j], begun, M::at(i, j), j % 2 ? differences[i] : sums[i]);
            add(y[j], begun, M::at(in - 1, j), x[in - 1]);
        }
    }
};

// Y = T X T' of a matrix of vectors: load(i, j) gives X's, store(i, j, vector) takes Y's.
template <class T, class Vector, class Load, class Store>
[[gnu::always_inline]] inline void on_both_sides(Load load, Store store) {
    Vector half[T::out][T::in];
#pragma GCC unroll 1
    for (int j = 0; j < T::in; ++j) {
        Vector x[T::in], y[T::out];
#pragma GCC unroll 8
        for (int i = 0; i < T::in; ++i) x[i] = load(i, j);
        T::of(x, y);
#pragma GCC unroll 8
        for (int i = 0; i < T::out; ++i) half[i][j] = y[i];
    }
#pragma GCC unroll 1
    for (int i = 0; i < T::out; ++i) {
        Vector y[T::out];
        T::of(half[i], y);
#pragma GCC unroll 8
        for (int j = 0; j < T::out; ++j) store(i, j, y[j]);
    }
}

// ---------------------------------------------------------------- the layer

// Channels whose weights at one point are read together: [others][panel] of them stay in the first-level cache.
constexpr long panel(long channels) { return std::min(channels, 64l); }

// Patches and tiles of n examples lie as [POINTS][n TILES][channels], a point's part `apart` numbers from the last.
template <long H, long W, long C, long O, long K, long P, bool BIAS = true>
struct Winograd {
    static constexpr long OH = H + 2 * P - K + 1, OW = W + 2 * P - K + 1, N = K + 3, POINTS = N * N;
    static constexpr long TX = ceil_div(OW, 4), TILES = ceil_div(OH, 4) * TX;
    static constexpr long inputs = H * W * C, outputs = OH * OW * O, parameters = O * K * K * C + BIAS * O;
    static constexpr long POINT = C * O + WIDTH;  // numbers from a point's weights to the next one's, no power of 2
    static constexpr long WEIGHTS = POINTS * POINT, EACH = TILES * std::max(C, O) + WIDTH;
    // Ready: the weights [POINTS][panels][C][of O] for the output and [POINTS][panels][O][of C] for the input.
    static constexpr long kept = 0, ready = 2 * WEIGHTS + O * K * K * C, sums = WEIGHTS + padded(O);
    static constexpr long scratch = 2 * POINTS * EACH;
    static constexpr int tensors = 1 + BIAS;
    static constexpr bool reads_input = true, reads_output = false, together = true;
    static constexpr long block = ceil_div(8, TILES), ROWS = block * TILES;  // weights read once serve 8 rows or more

    static constexpr long apart(long n, long channels) { return n * TILES * channels + WIDTH; }  // not a power of 2

    using In = Columns<C>;
    using Out = Columns<O>;
    using InVector = typename In::Vector;
    using OutVector = typename Out::Vector;

    // each(tile, example, first pixel's row and column in the output) of n examples
    template <class Each>
    static void tiles(long n, Each each) {
        for (long m = 0, tile = 0; m < n; ++m)
            for (long y = 0; y < OH; y += 4)
                for (long x = 0; x < OW; x += 4, ++tile) each(tile, m, y, x);
    }

    static void prepare(const real* w, real* ready) {
        real *forward = ready, *backward = ready + WEIGHTS, *turned = backward + WEIGHTS;  // turned: [K][K][C][O]
        for (long some = 0; some < O; some += WIDTH)  // of which each is read on, number by number
            for (long k = 0; k < K * K * C; ++k)
                for (long o = some; o < some + WIDTH; ++o) turned[k * O + o] = w[o * K * K * C + k];
        for (long c = 0; c < C; ++c) kernels<O, C>(turned + c * O, C * O, c, forward);
        for (long o = 0; o < O; ++o) kernels<C, O>(w + o * K * K * C, C, o, backward);
    }
    // G g G' of the kernels of one row of [ROWS][COLUMNS] channels; w's taps lie `tap` numbers apart.
    template <long COLUMNS, long ROWS>
    static void kernels(const real* w, long tap, long row, real* to) {
        using Cut = Columns<COLUMNS>;
        using Vector = typename Cut::Vector;
        constexpr long wide = panel(COLUMNS);
        for (int v = 0; v < Cut::count; ++v) {
            const long c = Cut::offset(v);
            real* at = to + c / wide * ROWS * wide + row * wide + c % wide;
            on_both_sides<Times<G<K>>, typename Vector::type>(
                [&](int i, int j) { return Vector::load(w + (i * K + j) * tap + c); },
                [&](int i, int j, auto value) { Vector::store(at + (i * N + j) * POINT, value); });
        }
    }

    // B' d B of all patches; what lies outside of the picture is 0.
    static void patches(long n, const real* in, real* to) {
        static const real nothing[N * C] = {};
        const long part = apart(n, C);
        tiles(n, [&](long tile, long m, long y, long x) {
            const real* rows[N];
            for (int i = 0; i < N; ++i) {
                const long row = y + i - P;
                rows[i] = row < 0 || row >= H ? nothing : in + ((m * H + row) * W + x - P) * C;
            }
            const long from = std::max(0l, P - x), end = std::min(N, W + P - x);
            for (int v = 0; v < In::count; ++v) {
                real* at = to + tile * C + In::offset(v);
                on_both_sides<Times<B<K>>, typename InVector::type>(
                    [&](int i, int j) {
                        return InVector::load((j < from || j >= end ? nothing : rows[i] + j * C) + In::offset(v));
                    },
                    [&](int i, int j, auto value) { InVector::store(at + (i * N + j) * part, value); });
            }
        });
    }
    // B z B' of all patches' gradients, added to the pixels that they come from.
    static void back_to_pixels(long n, const real* from, real* din) {
        const long part = apart(n, C);
        std::memset(din, 0, sizeof(real) * n * inputs);
        tiles(n, [&](long tile, long m, long y, long x) {
            for (int v = 0; v < In::count; ++v) {
                const real* at = from + tile * C + In::offset(v);
                const bool repeats = In::repeated && v + 1 == In::count;
                real* to = din + ((m * H + y - P) * W + x - P) * C + In::offset(v);
                on_both_sides<TransposedTimes<B<K>>, typename InVector::type>(
                    [&](int i, int j) { return InVector::load(at + (i * N + j) * part); },
                    [&](int i, int j, auto value) {
                        if (y + i < P || y + i >= H + P || x + j < P || x + j >= W + P) return;
                        if (repeats) value *= In::fresh();
                        real* pixel = to + (i * W + j) * C;
                        InVector::store(pixel, InVector::load(pixel) + value);
                    });
            }
        });
    }
    // A dy A' of all tiles; what lies outside of the output is 0.
    static void tiles_of(long n, const real* dout, real* to) {
        const long part = apart(n, O);
        tiles(n, [&](long tile, long m, long y, long x) {
            for (int v = 0; v < Out::count; ++v) {
                const real* at = dout + ((m * OH + y) * OW + x) * O + Out::offset(v);
                on_both_sides<Times<A<K>>, typename OutVector::type>(
                    [&](int i, int j) {
                        const bool there = (OH % 4 == 0 || y + i < OH) && (OW % 4 == 0 || x + j < OW);
                        return there ? OutVector::load(at + (i * OW + j) * O) : typename OutVector::type{};
                    },
                    [&](int i, int j, auto value) {
                        OutVector::store(to + (i * N + j) * part + tile * O + Out::offset(v), value);
                    });
            }
        });
    }
    // A' m A of all tiles, and the biases.
    static void outputs_of(long n, const real* from, const real* bias, real* out) {
        const long part = apart(n, O);
        tiles(n, [&](long tile, long m, long y, long x) {
            for (int v = 0; v < Out::count; ++v) {
                const real* at = from + tile * O + Out::offset(v);
                real* to = out + ((m * OH + y) * OW + x) * O + Out::offset(v);
                const auto more = BIAS ? OutVector::load(bias + Out::offset(v)) : typename OutVector::type{};
                on_both_sides<TransposedTimes<A<K>>, typename OutVector::type>(
                    [&](int i, int j) { return OutVector::load(at + (i * N + j) * part); },
                    [&](int i, int j, auto value) {
                        if ((OH % 4 == 0 || y + i < OH) && (OW % 4 == 0 || x + j < OW))
                            OutVector::store(to + (i * OW + j) * O, value + more);
                    });
            }
        });
    }

    // At each point, left [rows][INNER] times the weights [panels][INNER][of COLUMNS].
    template <long INNER, long COLUMNS>
    static void at_points(long rows, const real* left, long apart, const real* weights, real* to, long to_apart) {
        constexpr long wide = panel(COLUMNS);
        for (long p = 0; p < POINTS; ++p, left += apart, weights += POINT, to += to_apart)
            for (long c = 0; c < COLUMNS; c += wide) {
                const Right right{weights + c * INNER, wide, 0};
                long row = 0;
                for (; row + ROWS <= rows; row += ROWS)
                    product<Into::Fresh, ROWS, wide>(ROWS, 1, INNER, {left + row * INNER, INNER, 1, 0}, right,
                                                     to + row * COLUMNS + c, COLUMNS);
                product<Into::Fresh, 0, wide>(rows - row, 1, INNER, {left + row * INNER, INNER, 1, 0}, right,
                                              to + row * COLUMNS + c, COLUMNS);
            }
    }
    // A block at a time, since the tiles of more would not stay in the cache.
    static void forward(const real* w, const real* ready, long n, const real* in, real* out, real*, real* scratch) {
        for (long m = 0; m < n; m += block)
            forward_block(w, ready, std::min(block, n - m), in + m * inputs, out + m * outputs, scratch);
    }
    static void backward(const real*, const real* ready, long n, const real* in, const real*, const real*,
                         const real* dout, real* din, real* scratch, real* sums) {
        for (long m = 0; m < n; m += block)
            backward_block(ready, std::min(block, n - m), in + m * inputs, dout + m * outputs,
                           din ? din + m * inputs : nullptr, scratch, sums);
    }
    static void forward_block(const real* w, const real* ready, long n, const real* in, real* out, real* scratch) {
        real *patch = scratch, *tile = scratch + n * POINTS * EACH;
        patches(n, in, patch);
        at_points<C, O>(n * TILES, patch, apart(n, C), ready, tile, apart(n, O));
        outputs_of(n, tile, w + O * K * K * C, out);
    }
    static void backward_block(const real* ready, long n, const real* in, const real* dout, real* din, real* scratch,
                               real* sums) {
        const long rows = n * TILES, in_apart = apart(n, C), out_apart = apart(n, O);
        real *patch = scratch, *tile = scratch + n * POINTS * EACH;
        patches(n, in, patch);
        tiles_of(n, dout, tile);
        constexpr long wide = panel(C);
        for (long p = 0; p < POINTS; ++p)  // sums [POINTS][panels][O][of C]
            for (long c = 0; c < C; c += wide)
                product<Into::More, O, wide>(O, 1, rows, {tile + p * out_apart, 1, O, 0},
                                             {patch + p * in_apart + c, C, 0}, sums + p * POINT + c * O, wide);
        static const real one = 1;
        if constexpr (BIAS)
            product<Into::More, 1, O>(1, 1, n * OH * OW, {&one, 0, 0, 0}, {dout, O, 0}, sums + WEIGHTS, O);
        if (!din) return;
        at_points<O, C>(rows, tile, out_apart, ready + WEIGHTS, patch, in_apart);
        back_to_pixels(n, patch, din);
    }
    template <class Sink>
    static void finish(const real* sums, real* block, Sink sink) {  // `block` is as large as what was ready
        real* dw = sink.room(0, block);
        constexpr long wide = panel(C);
        for (long o = 0; o < O; ++o)
            for (int v = 0; v < In::count; ++v) {
                const long c = In::offset(v);
                const real* at = sums + c / wide * O * wide + o * wide + c % wide;
                on_both_sides<TransposedTimes<G<K>>, typename InVector::type>(
                    [&](int i, int j) { return InVector::load(at + (i * N + j) * POINT); },
                    [&](int i, int j, auto value) { InVector::store(dw + (o * K * K + i * K + j) * C + c, value); });
            }
        sink.done(0, O * K * K * C, dw, 0);
        if constexpr (!BIAS) return;
        real* db = sink.room(O * K * K * C, block);
        std::memcpy(db, sums + WEIGHTS, sizeof(real) * O);
        sink.done(O * K * K * C, O, db, 1);
    }
};

// Whether that form is meant for a convolution: whole vectors and panels of channels, and maps of a whole tile or more.
template <long H, long W, long C, long O, long K, long S>
constexpr bool fits() {
    constexpr bool channels = C % WIDTH == 0 && O % WIDTH == 0 && C % panel(C) == 0 && O % panel(O) == 0;
    return S == 1 && (K == 3 || K == 5) && channels && H >= 4 && W >= 4;
}

// A convolution by the fewest multiplications, as `Conv<height, width, channels, outputs, kernel, stride, padding>`.
template <bool FITS, long H, long W, long C, long O, long K, long S, long P, bool BIAS>
struct Fewest {
    using type = Direct<H, W, C, O, K, S, P, BIAS>;
};
template <long H, long W, long C, long O, long K, long P, bool BIAS>
struct Fewest<true, H, W, C, O, K, 1, P, BIAS> {
    using type = Winograd<H, W, C, O, K, P, BIAS>;
};
template <long H, long W, long C, long O, long K, long S, long P, bool BIAS = true>
using Conv = typename Fewest<fits<H, W, C, O, K, S>(), H, W, C, O, K, S, P, BIAS>::type;
