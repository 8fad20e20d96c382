// A learner's step of SGD and its correction towards the centre in one pass: every number is read and written once.
//
// For a learner with weights w, velocity v and gradient g, and for the centre z:
//
//     c <- alpha (w - z);  v <- mu v + g + decay w;  w <- w - lr v - c
//
// The first learner of a round comes before all other weights have changed, so it moves the centre as well:
//
//     z_prev <- z + sum_j c_j + momentum (z - z_prev), after which z and z_prev change names at the end of the round
//
// Rounded as torch rounds: its operations on whole vectors, and its fused SGD, which rounds the product with the
// momentum only where a tensor fills its vectors of 32 bytes, not in the few numbers left at the end. To be compiled
// without contraction, so that products and sums are fused only where it says so here. `REAL` is float or double.

#include <cmath>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

using real = REAL;

constexpr long VECTOR = 32 / sizeof(real);

struct Rates {
    real lr, momentum, decay, alpha, centre;
};

// Steps and corrects n numbers of one learner. Where it is the first of `rows`, the others' lie d numbers apart behind.
template <int rows, bool ends, bool remembers>
static void learner(long n, long d, real* __restrict w, real* __restrict v, const real* __restrict g,
                    const real* __restrict z, real* __restrict z_prev, Rates by) {
    const real* __restrict others = w + d;
    for (long i = 0; i < n; ++i) {
        const real x = w[i], centre = z[i], correction = (x - centre) * by.alpha;
        if constexpr (rows > 0) {
            real total = correction;
            for (int row = 0; row + 1 < rows; ++row) total += (others[row * d + i] - centre) * by.alpha;
            z_prev[i] = std::fma(centre - z_prev[i], by.centre, total + centre);
        }
        real direction = by.decay != 0 ? std::fma(x, by.decay, g[i]) : g[i];
        if constexpr (remembers)
            v[i] = direction = ends ? std::fma(v[i], by.momentum, direction) : v[i] * by.momentum + direction;
        w[i] = std::fma(direction, -by.lr, x) - correction;
    }
}

template <bool ends, bool remembers>
static void numbers(long rows, long n, long d, real* w, real* v, const real* g, const real* z, real* z_prev, Rates by) {
    constexpr decltype(&learner<0, ends, remembers>) of[] = {
        learner<0, ends, remembers>, learner<1, ends, remembers>, learner<2, ends, remembers>,
        learner<3, ends, remembers>, learner<4, ends, remembers>};
    of[rows](n, d, w, v, g, z, z_prev, by);
}

// Tensors of the given sizes, one behind the other from `at` on in w, v, z and z_prev [d]; gradients [tensors] point to
// one tensor's each. `rows` is the number of learners for the first of them, and 0 for the others.
extern "C" void step(long rows, long d, long at, long tensors, const long* sizes, const real* const* gradients,
                     real* w, real* v, const real* z, real* z_prev, double lr, double momentum, double decay,
                     double alpha, double centre) {
    const Rates by = {real(lr), real(momentum), real(decay), real(alpha), real(centre)};
    const auto whole = by.momentum != 0 ? numbers<false, true> : numbers<false, false>;
    const auto rest = by.momentum != 0 ? numbers<true, true> : numbers<true, false>;
    for (long tensor = 0; tensor < tensors; at += sizes[tensor++]) {
        const real* g = gradients[tensor];
        const long n = sizes[tensor], full = n - n % VECTOR, end = at + full;
        whole(rows, full, d, w + at, v + at, g, z + at, z_prev + at, by);
        rest(rows, n - full, d, w + end, v + end, g + full, z + end, z_prev + end, by);
    }
}

// Copies past the cache, so that memory which is overwritten is not read before. `to` begins where 16 bytes do.
extern "C" void copy(long bytes, char* to, const char* from) {
    long at = 0;
#ifdef __SSE2__
    for (; at + 16 <= bytes; at += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
    _mm_sfence();
#endif
    std::memcpy(to + at, from + at, bytes - at);
}
