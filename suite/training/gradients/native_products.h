// Products of small matrices by the widest vectors of the processor; every extent that is known is a constant.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
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
