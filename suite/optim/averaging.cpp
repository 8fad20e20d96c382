// A step of SGD and the averaging with the centre in one pass: every number is read once and written once.
//
// For learner j of the rows held here, with gradient g, and for the centre z:
//
//     c_j <- alpha (w_j - z);  v_j <- mu v_j + g + decay w_j;  w_j <- w_j - lr v_j - c_j
//     z_prev <- z + sum_j c_j + momentum (z - z_prev), after which z and z_prev change names
//
// Rounded as torch rounds: its operations on whole vectors, and its fused SGD, which rounds the product with the
// momentum only where a tensor fills its vectors of 32 bytes, not in the few numbers left at the end. To be compiled
// without contraction, so that products and sums are fused only where it says so here. `REAL` is float or double.

#include <algorithm>
#include <cmath>

using real = REAL;

constexpr long VECTOR = 32 / sizeof(real), BLOCK = 65536 / sizeof(real);  // numbers that stay in the cache between learners

struct Rates {
    real lr, momentum, decay, alpha, centre;
};

// Steps and corrects n numbers of one learner, and adds what it gives up to `total`.
template <bool ends, bool remembers>
static void learner(long n, real* __restrict w, real* __restrict v, const real* __restrict g,
                    const real* __restrict z, real* __restrict total, Rates by) {
    for (long i = 0; i < n; ++i) {
        const real x = w[i], correction = (x - z[i]) * by.alpha;
        real direction = by.decay != 0 ? std::fma(x, by.decay, g[i]) : g[i];
        if constexpr (remembers)
            v[i] = direction = ends ? std::fma(v[i], by.momentum, direction) : v[i] * by.momentum + direction;
        w[i] = std::fma(direction, -by.lr, x) - correction;
        total[i] += correction;
    }
}

template <bool ends>
static void numbers(long n, long rows, long d, long tensors, long at, const real* const* gradients, long tensor,
                    long inside, real* w, real* v, const real* z, real* z_prev, Rates by) {
    real total[BLOCK];
    for (long first = 0; first < n; first += BLOCK) {
        const long many = std::min(BLOCK, n - first), here = at + first;
        std::fill_n(total, many, real(0));
        for (long row = 0; row < rows; ++row) {
            const real* gradient = gradients[row * tensors + tensor] + inside + first;
            const auto move = by.momentum != 0 ? learner<ends, true> : learner<ends, false>;
            move(many, w + row * d + here, v + row * d + here, gradient, z + here, total, by);
        }
        const real *__restrict centre = z + here, *__restrict given = total;
        real* __restrict previous = z_prev + here;
        for (long i = 0; i < many; ++i)
            previous[i] = std::fma(centre[i] - previous[i], by.centre, given[i] + centre[i]);
    }
}

// Tensors of the given sizes, one behind the other from `at` on in rows w, v [rows, d] and in z, z_prev [d];
// gradients [rows][tensors] point to one tensor's each.
extern "C" void average(long rows, long d, long at, long tensors, const long* sizes, const real* const* gradients,
                        real* w, real* v, const real* z, real* z_prev, double lr, double momentum, double decay,
                        double alpha, double centre) {
    const Rates by = {real(lr), real(momentum), real(decay), real(alpha), real(centre)};
    for (long tensor = 0; tensor < tensors; at += sizes[tensor++]) {
        const long n = sizes[tensor], whole = n - n % VECTOR;
        numbers<false>(whole, rows, d, tensors, at, gradients, tensor, 0, w, v, z, z_prev, by);
        numbers<true>(n - whole, rows, d, tensors, at + whole, gradients, tensor, whole, w, v, z, z_prev, by);
    }
}
