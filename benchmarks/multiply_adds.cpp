// As many multiply-adds as a core makes: chains that do not wait for one another, on vectors that stay in registers.

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
typedef float Vector __attribute__((vector_size(BYTES)));
constexpr int CHAINS = 12;  // more than a multiply-add takes cycles, times two units that make them

// Operations of `turns` turns, two for each multiply-add of each number; the last values keep them from being left out.
extern "C" double multiply_adds(long turns, float factor, float* last) {
    Vector sums[CHAINS];
    for (int i = 0; i < CHAINS; ++i) sums[i] = Vector{} + static_cast<float>(i);
    const Vector by = Vector{} + factor;
    for (long turn = 0; turn < turns; ++turn)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * by + by;
    for (int i = 1; i < CHAINS; ++i) sums[0] += sums[i];
    *last = sums[0][0];
    return 2.0 * turns * CHAINS * (BYTES / sizeof(float));
}
