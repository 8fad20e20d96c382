"""The attentional encoder-decoder of inverse_law, Eqs. 14-17.

A bidirectional GRU encoder; a decoder of two GRU units with the attention between them (the conditional GRU
of Nematus); a two-layer readout; softmax over the target vocabulary. For source position i and target
position t:

    h_i   = [forward GRU; backward GRU]                                   (14)
    s'_t  = GRU_1(E y_{t-1}, s_{t-1})
    a_t,i = softmax_i(v . tanh(W s'_t + U h_i))                           (17)
    H_t   = sum_i a_t,i h_i                                               (16)
    s_t   = GRU_2(H_t, s'_t)
    p_t   = softmax(W_o tanh(W_1 [E y_{t-1}; s_t; H_t] + b) + b_o)        (15)

with s_0 = tanh(W_init mean_i h_i). The paper leaves open s_0 (Nematus' choice here), all sizes, and the
initialiser: PyTorch's defaults are used, since the paper trained with PyTorch.

Shapes: B sentences, S source and T target positions, V target words, E embedding, H hidden, A attention.
A mask is true on words and false on padding; every sentence has a word. Padding changes nothing, wherever it
stands: neither GRU moves on it, and neither the mean nor the attention sees it.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from suite.models.initialisers import FanInUniform, Gaussian, ParameterSpec, Uniform
from suite.models.layers import Embedding, Linear


class GRU(nn.Module):
    """``units`` gated recurrent units side by side, each with the parameters of ``torch.nn.GRUCell``.

    ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))`` and ``h' = (1 - z) n + z h``. The part that needs only
    the inputs is a method of its own, so that it runs once for all positions.
    """

    def __init__(self, inputs: int, hidden: int, units: int = 1) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(units, 3 * hidden, inputs))
        self.weight_hh = nn.Parameter(torch.empty(units, 3 * hidden, hidden))
        self.bias_ih = nn.Parameter(torch.empty(units, 1, 3 * hidden))
        self.bias_hh = nn.Parameter(torch.empty(units, 1, 3 * hidden))
        rule = ParameterSpec(Uniform(1 / sqrt(hidden)))
        self.specs = dict.fromkeys(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), rule)

    def project(self, x: Tensor) -> Tensor:
        """``W_i x + b_i`` of all units: ``[N, inputs] -> [units, N, 3 H]``."""
        return torch.matmul(x, self.weight_ih.transpose(1, 2)) + self.bias_ih

    def step(self, projected: Tensor, h: Tensor) -> Tensor:
        """One time step: ``projected [units, B, 3 H]``, ``h [units, B, H] -> [units, B, H]``."""
        recurrent = torch.baddbmm(self.bias_hh, h, self.weight_hh.transpose(1, 2))
        reset_in, update_in, new_in = projected.chunk(3, -1)
        reset_h, update_h, new_h = recurrent.chunk(3, -1)
        r = torch.sigmoid(reset_in + reset_h)
        z = torch.sigmoid(update_in + update_h)
        n = torch.tanh(new_in + r * new_h)
        return n + z * (h - n)


class Encoded(NamedTuple):
    """A batch of source sentences, ready for decoding."""

    states: Tensor  # [B, S, 2 H] h_i
    keys: Tensor  # [B, S, A] U h_i
    mask: Tensor  # [B, S] bool
    start: Tensor  # [B, H] s_0

    def select(self, rows: Tensor) -> Encoded:
        """The sentences ``rows [N]`` int64, repeats allowed: one row per hypothesis of a beam."""
        return Encoded(*(part[rows] for part in self))


class ConditionalGRU(nn.Module):
    """The translation network for ``vocabulary`` words on both sides, with A = 2 H; see the module's docstring."""

    def __init__(self, *, vocabulary: int, embedding: int, hidden: int) -> None:
        super().__init__()
        rule, attention = FanInUniform(), 2 * hidden
        self.source = Embedding(vocabulary, embedding, weight=Gaussian(1.0))
        self.target = Embedding(vocabulary, embedding, weight=Gaussian(1.0))
        self.encoder = GRU(embedding, hidden, units=2)  # forward, backward
        self.initial = Linear(2 * hidden, hidden, weight=rule, bias=rule)
        self.first = GRU(embedding, hidden)
        self.key = Linear(2 * hidden, attention, weight=rule, bias=rule)
        self.query = Linear(hidden, attention, weight=rule, bias=None)
        self.score = Linear(attention, 1, weight=rule, bias=None)
        self.second = GRU(2 * hidden, hidden)
        self.readout = Linear(embedding + hidden + 2 * hidden, embedding, weight=rule, bias=rule)
        self.output = Linear(embedding, vocabulary, weight=rule, bias=rule)
        self.hidden = hidden

    def encode(self, source: Tensor, source_mask: Tensor) -> Encoded:
        """Read ``source [B, S]`` int64 under ``source_mask [B, S]``, true on words."""
        batch, length = source.shape
        mask = source_mask.bool()
        words = self.source(source).transpose(0, 1)  # [S, B, E]
        projected = self.encoder.project(words.flatten(0, 1)).unflatten(1, (length, batch))  # [2, S, B, 3 H]
        # Both directions advance together: at step i one is at position i, the other at S - 1 - i. On padding
        # a state stays as it was, so the backward one is still 0 when it meets its first word.
        both = torch.stack((projected[0], projected[1].flip(0)), 1)  # [S, 2, B, 3 H]
        column = mask.t()
        is_word = torch.stack((column, column.flip(0)), 1).unsqueeze(-1)  # [S, 2, B, 1]
        h = projected.new_zeros(2, batch, self.hidden)
        history = []
        # unbind, not indexing: its gradient is one stack instead of one full-sized sum per step.
        for step_in, is_word_here in zip(both.unbind(0), is_word.unbind(0), strict=True):
            h = torch.where(is_word_here, self.encoder.step(step_in, h), h)
            history.append(h)
        path = torch.stack(history)  # [S, 2, B, H]
        states = torch.cat((path[:, 0], path[:, 1].flip(0)), -1).transpose(0, 1)  # [B, S, 2 H]
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return Encoded(states, self.key(states), mask, torch.tanh(self.initial(mean)))

    def attend(self, encoded: Encoded, query: Tensor) -> Tensor:
        """Eq. 17 for ``query [B, H]``: attention ``[B, S]``, which sums to 1 and is exactly 0 on padding."""
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + encoded.keys)).squeeze(-1)
        scores = scores.masked_fill(~encoded.mask, torch.finfo(scores.dtype).min)
        return torch.softmax(scores, -1)

    def advance(self, encoded: Encoded, projected: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """From ``projected [1, B, 3 H]`` and s_{t-1}: s_t ``[B, H]`` and the context H_t ``[B, 2 H]``, Eq. 16."""
        between = self.first.step(projected, state.unsqueeze(0))
        attention = self.attend(encoded, between.squeeze(0))
        context = torch.bmm(attention.unsqueeze(1), encoded.states).squeeze(1)
        return self.second.step(self.second.project(context), between).squeeze(0), context

    def read_out(self, words: Tensor, states: Tensor, contexts: Tensor) -> Tensor:
        """Eq. 15 without the softmax: ``[..., E], [..., H], [..., 2 H] -> [..., V]``."""
        return self.output(torch.tanh(self.readout(torch.cat((words, states, contexts), -1))))

    def step(self, encoded: Encoded, previous: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One position of a search, from words ``previous [B]`` int64 and s_{t-1} (at first ``start``).

        Returns:
            Logits [B, V], and s_t [B, H] for the next step.
        """
        words = self.target(previous)
        state, context = self.advance(encoded, self.first.project(words), state)
        return self.read_out(words, state, context), state

    def forward(self, source: Tensor, source_mask: Tensor, target_in: Tensor) -> Tensor:
        """Logits ``[B, T, V]`` of each next word, given ``target_in [B, T]``: the target shifted by one."""
        batch, length = target_in.shape
        encoded = self.encode(source, source_mask)
        words = self.target(target_in)  # [B, T, E]
        projected = self.first.project(words.transpose(0, 1).flatten(0, 1)).unflatten(1, (length, batch))
        state, states, contexts = encoded.start, [], []
        for projected_t in projected.unbind(1):
            state, context = self.advance(encoded, projected_t, state)
            states.append(state)
            contexts.append(context)
        return self.read_out(words, torch.stack(states, 1), torch.stack(contexts, 1))
