// Each of LAYERS alone: outputs [n], gradients of inputs [n] and of parameters at w, for gradients of the outputs [n].
#include <tuple>

#include "native.cpp"

template <class... Layers>
static void chosen(std::tuple<Layers...>*, int which, long n, const real* w, const real* in, const real* dout,
                   real* out, real* din, real* dw, real* beside) {
    const auto one = [=](auto* layer) {
        using Layer = std::remove_pointer_t<decltype(layer)>;
        std::vector<real> work(Layer::work(n, 1));
        const Team team{0, 1, nullptr};
        Layer::forward(team, n, w, in, out, work.data(), beside);
        Layer::backward(team, n, w, in, out, dout, din, Write{dw}, work.data(), beside);
    };
    int at = 0;
    ((at++ == which ? one(static_cast<Layers*>(nullptr)) : void()), ...);
}

extern "C" void alone(int which, long n, const real* w, const real* in, const real* dout, real* out, real* din,
                      real* dw, real* beside) {
    chosen(static_cast<std::tuple<LAYERS>*>(nullptr), which, n, w, in, dout, out, din, dw, beside);
}
