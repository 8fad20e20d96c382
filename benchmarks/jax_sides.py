"""The rival in JAX: the plain loop's networks, data and solver as one compiled loop over updates.

A sample is one call: the loop over its updates, gathering of batches included, is compiled with a number of updates
known when it is called (as fast as ``lax.scan``, and compiled once), and the host waits at its end alone. Seeds of a
sweep are one call by ``vmap``, each on batches of its own, or come one after another. Only processes of
:mod:`benchmarks.processes` import this module: XLA reads its number of threads once, when it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array, lax
from torch import Tensor, nn

from benchmarks import plain
from benchmarks.workloads import Workload
from suite.models import build, initialise

State = tuple[dict[str, Array], dict[str, Array]]  # parameters and velocities by name
Layer = Callable[[dict[str, Array], Array], Array]


class Form:
    """A way to write a convolution, and in which order its maps and weights lie."""

    def __init__(self, name: str):
        """``im2col``, ``conv`` or ``conv channels-last``."""
        self.unfolded, self.last = name == "im2col", name != "conv"
        self.maps = "NHWC" if self.last else "NCHW"
        self.kernel = "HWIO" if self.last else "OIHW"

    def laid(self, weight: Tensor) -> Array:
        """Torch's parameter as this form keeps it: kernels as ``kernel`` says, matrices [in, out]."""
        if weight.dim() == 4 and self.last:
            weight = weight.permute(2, 3, 1, 0)
        return jnp.array((weight.T if weight.dim() == 2 else weight).detach().contiguous().numpy())

    def restored(self, weight: Array) -> np.ndarray:
        """The same as torch keeps it."""
        if weight.ndim == 4 and self.last:
            return np.transpose(weight, (3, 2, 0, 1))
        return np.asarray(weight.T if weight.ndim == 2 else weight)

    def convolve(self, x: Array, kernel: Array, padding: int) -> Array:
        if not self.unfolded:
            ends = [(padding, padding)] * 2
            orders = self.maps, self.kernel, self.maps
            return lax.conv_general_dilated(x, kernel, (1, 1), ends, dimension_numbers=orders)
        x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
        high, wide, _, outputs = kernel.shape
        rows, columns = x.shape[1] - high + 1, x.shape[2] - wide + 1
        windows = [x[:, i : i + rows, j : j + columns] for i in range(high) for j in range(wide)]
        return jnp.concatenate(windows, -1) @ kernel.reshape(-1, outputs)

    def pooled(self, x: Array, size: int, stride: int, most: bool) -> Array:
        """Maxima or means of windows, their number rounded up; what hangs over the maps does not count."""
        first = 1 if self.last else 2
        extents = x.shape[first : first + 2]
        if most and size == stride and not any(extent % size for extent in extents):
            parts = [part for extent in extents for part in (extent // size, size)]
            x = x.reshape(*x.shape[:first], *parts, *x.shape[first + 2 :])
            return x.max((first + 1, first + 3))
        window, steps, ends = ([value] * 4 for value in (1, 1, (0, 0)))
        for axis, extent in enumerate(extents, first):
            count = -(-(extent - size) // stride) + 1
            window[axis], steps[axis], ends[axis] = size, stride, (0, (count - 1) * stride + size - extent)
        if most:
            return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, ends)
        total, counted = (lax.reduce_window(a, 0.0, lax.add, window, steps, ends) for a in (x, jnp.ones_like(x[:1])))
        return total / counted

    def layer(self, name: str, layer: nn.Module) -> Layer:
        """A layer of LeNet or "quick" as a function of all parameters and its input."""
        match layer:
            case nn.Conv2d(stride=(1, 1), dilation=(1, 1), groups=1, padding=(int() as padding, _)):
                shape = (-1,) if self.last else (-1, 1, 1)
                return lambda w, x: self.convolve(x, w[f"{name}.weight"], padding) + w[f"{name}.bias"].reshape(shape)
            case nn.MaxPool2d(padding=0, dilation=1, ceil_mode=True) | nn.AvgPool2d(padding=0, ceil_mode=True):
                size, stride, most = layer.kernel_size, layer.stride, isinstance(layer, nn.MaxPool2d)
                return lambda w, x: self.pooled(x, size, stride, most)
            case nn.ReLU():
                return lambda w, x: jax.nn.relu(x)
            case nn.Flatten():  # in torch's order
                return lambda w, x: (x.transpose(0, 3, 1, 2) if self.last else x).reshape(len(x), -1)
            case nn.Linear():
                return lambda w, x: x @ w[f"{name}.weight"] + w[f"{name}.bias"]
        raise ValueError(f"layer {name} ({type(layer).__name__}) is not written in JAX")


class Loop:
    """Networks of a workload's runs trained by plain SGD: in one call where ``together``, else one after another."""

    def __init__(self, workload: Workload, form: str, together: bool = False):
        self.form, self.together, self.t = Form(form), together, 0
        module: Any = build(workload.network)
        self.layers = [self.form.layer(name, layer) for name, layer in module.named_children()]
        inputs, targets, batches = plain.examples(workload)
        self.inputs = jnp.array((inputs.permute(0, 2, 3, 1) if self.form.last else inputs).contiguous().numpy())
        self.targets, self.batches = jnp.array(targets.numpy()), jnp.array(torch.stack(batches).numpy())
        apart = max(1, len(batches) // workload.runs)
        self.firsts: list[Any] = [seed * apart for seed in range(workload.runs)]  # a seed's batch when t is 0
        states = []
        for seed in range(workload.runs):
            initialise(module, seed)
            weights = {name: self.form.laid(p) for name, p in module.named_parameters()}
            states.append((weights, jax.tree.map(jnp.zeros_like, weights)))
        advance: Any = self.advance
        if together:
            states = [jax.tree.map(lambda *parts: jnp.stack(parts), *states)]
            self.firsts = [np.array(self.firsts)]
            advance = jax.vmap(advance, (0, 0, None))
        self.states, self.compiled = states, jax.jit(advance, donate_argnums=0)

    def loss(self, weights: dict[str, Array], x: Array, targets: Array) -> Array:
        for layer in self.layers:
            x = layer(weights, x)
        return -jnp.take_along_axis(jax.nn.log_softmax(x), targets[:, None], 1).mean()

    def advance(self, state: State, first: Array, updates: Array) -> State:
        """A state after so many updates, from the batch ``first`` on; an epoch's batches come round in order."""

        def update(i: Array, state: State) -> State:
            weights, velocity = state
            rows = self.batches[(first + i) % len(self.batches)]
            grads = jax.grad(self.loss)(weights, self.inputs[rows], self.targets[rows])
            velocity = jax.tree.map(
                lambda v, g, w: plain.MOMENTUM * v + g + plain.DECAY * w, velocity, grads, weights
            )
            return jax.tree.map(lambda w, v: w - plain.RATE * v, weights, velocity), velocity

        return lax.fori_loop(0, updates, update, state)

    def run(self, updates: int) -> None:
        """So many updates of every network, all done when it returns."""
        for i, first in enumerate(self.firsts):
            self.states[i] = self.compiled(self.states[i], first + self.t, updates)
        jax.block_until_ready(self.states)
        self.t += updates

    def weights(self, seed: int) -> dict[str, np.ndarray]:
        """A network's parameters as torch keeps them."""
        held, _ = self.states[0 if self.together else seed]
        return {name: self.form.restored(w[seed] if self.together else w) for name, w in held.items()}
