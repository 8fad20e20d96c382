// Each of LAYERS alone: outputs [n], gradients of inputs [n] and of parameters at w, for gradients of the outputs [n].
#include <tuple>
#include <vector>

#include "native_winograd.h"

template <class Layer>
static void one(long n, const real* w, const real* in, const real* dout, real* out, real* din, real* dw) {
    std::vector<real> ready(Layer::ready), sums(Layer::sums), scratch(n * Layer::scratch);
    Layer::prepare(w, ready.data());
    Layer::forward(w, ready.data(), n, in, out, nullptr, scratch.data());
    Layer::backward(w, ready.data(), n, in, out, nullptr, dout, din, scratch.data(), sums.data());
    Layer::finish(sums.data(), ready.data(), Write{dw});
}

template <class... Layers>
static void chosen(std::tuple<Layers...>*, int which, long n, const real* w, const real* in, const real* dout,
                   real* out, real* din, real* dw) {
    int at = 0;
    ((at++ == which ? one<Layers>(n, w, in, dout, out, din, dw) : void()), ...);
}

extern "C" void convolution(int which, long n, const real* w, const real* in, const real* dout, real* out, real* din,
                            real* dw) {
    chosen(static_cast<std::tuple<LAYERS>*>(nullptr), which, n, w, in, dout, out, din, dw);
}
