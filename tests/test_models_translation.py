"""The attentional encoder-decoder against PyTorch's GRU cells, and its masking."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from suite.models import build, initialise
from suite.models.translation import GRU, ConditionalGRU

B, S, T, V, H = 3, 5, 4, 11, 6
LENGTHS = torch.tensor([5, 3, 1])
MASK = torch.arange(S) < LENGTHS.unsqueeze(1)


def network(**options: int) -> ConditionalGRU:
    module = build("cgru", **{"vocabulary": V, "embedding": 4, "hidden": H} | options)
    assert isinstance(module, ConditionalGRU)
    initialise(module, 5)
    return module.double()


def sentences(rows: int, length: int, seed: int) -> Tensor:
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(seed))


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


SOURCE, TARGET = sentences(B, S, 0), sentences(B, T, 1)


def cell_of(gru: GRU, unit: int = 0) -> nn.GRUCell:
    """PyTorch's cell with the parameters of one unit."""
    cell = nn.GRUCell(gru.weight_ih.shape[2], gru.weight_hh.shape[2], dtype=torch.float64)
    with torch.no_grad():
        for name, value in cell.named_parameters():
            value.copy_(getattr(gru, name)[unit].squeeze(0))
    return cell


def literal_forward(model: ConditionalGRU, source: Tensor, target_in: Tensor) -> Tensor:
    """Eqs. 14-17 word by word for one unpadded sentence, with PyTorch's cells: ``[S], [T] -> [T, V]``."""
    forward, backward = cell_of(model.encoder, 0), cell_of(model.encoder, 1)
    first, second = cell_of(model.first), cell_of(model.second)
    x = model.source(source)
    left, right = [], []
    h = g = torch.zeros(1, H, dtype=torch.float64)
    for i in range(len(source)):
        h, g = forward(x[i : i + 1], h), backward(x[len(source) - 1 - i].unsqueeze(0), g)
        left.append(h)
        right.insert(0, g)
    states = torch.cat((torch.cat(left), torch.cat(right)), 1)
    s = torch.tanh(model.initial(states.mean(0, keepdim=True)))
    logits = []
    for word in target_in:
        y = model.target(word.unsqueeze(0))
        between = first(y, s)
        scores = [model.score(torch.tanh(model.query(between) + model.key(state))) for state in states]
        attention = torch.softmax(torch.cat(scores).flatten(), 0)
        context = (attention.unsqueeze(1) * states).sum(0, keepdim=True)
        s = second(context, between)
        logits.append(model.output(torch.tanh(model.readout(torch.cat((y, s, context), 1)))))
    return torch.cat(logits)


def test_a_unit_is_torchs_gru_cell() -> None:
    gru = network().second
    x, h = normal(B, 2 * H), normal(B, H)
    expected = cell_of(gru)(x, h)
    torch.testing.assert_close(gru.step(gru.project(x), h.unsqueeze(0))[0], expected, rtol=0, atol=1e-14)


def test_forward_is_the_equations_word_by_word() -> None:
    model = network()
    logits = model(SOURCE, MASK, TARGET)
    for row in range(B):
        expected = literal_forward(model, SOURCE[row, : LENGTHS[row]], TARGET[row])
        torch.testing.assert_close(logits[row], expected, rtol=0, atol=1e-13)


def test_stepping_is_the_training_forward() -> None:
    model = network()
    encoded = model.encode(SOURCE, MASK)
    state, logits = encoded.start, []
    for t in range(T):
        found, state = model.step(encoded, TARGET[:, t], state)
        logits.append(found)
    torch.testing.assert_close(torch.stack(logits, 1), model(SOURCE, MASK, TARGET), rtol=0, atol=1e-13)


def test_attention_sums_to_one_and_is_exactly_zero_on_padding() -> None:
    model = network()
    encoded = model.encode(SOURCE, MASK)
    attention = model.attend(encoded, encoded.start)
    torch.testing.assert_close(attention.sum(1), torch.ones(B, dtype=torch.float64), rtol=0, atol=1e-15)
    assert (attention[~MASK] == 0).all()
    assert (attention[MASK] > 0).all()


@pytest.mark.parametrize("before", [True, False])
def test_padding_changes_nothing(before: bool) -> None:
    model = network()
    pad, nothing = sentences(B, 2, 7), torch.zeros(B, 2, dtype=torch.bool)
    order = slice(None, None, -1 if before else 1)
    padded = torch.cat([SOURCE, pad][order], 1), torch.cat([MASK, nothing][order], 1)
    expected = model(SOURCE, MASK, TARGET)
    torch.testing.assert_close(model(*padded, TARGET), expected, rtol=0, atol=1e-14)


def test_padding_words_get_no_gradient() -> None:
    model = network()
    source = torch.where(MASK, SOURCE % (V - 1), V - 1)
    model(source, MASK, TARGET).square().sum().backward()
    gradient = model.source.weight.grad
    assert gradient is not None
    assert (gradient[V - 1] == 0).all()
    assert gradient.abs().sum() > 0


def test_replicas_vectorise() -> None:
    model = network()
    points = [dict(model.named_parameters()), {k: 1.1 * v for k, v in model.named_parameters()}]
    stacked = {name: torch.stack([p[name].detach() for p in points]) for name in points[0]}

    def cost(parameters: dict[str, Tensor]) -> Tensor:
        logits = functional_call(model, parameters, (SOURCE, MASK, TARGET))
        return F.cross_entropy(logits.flatten(0, 1), TARGET.flatten())

    together = vmap(grad(cost))(stacked)
    for row, point in enumerate(points):
        alone = grad(cost)({name: value.detach() for name, value in point.items()})
        for name, value in alone.items():
            torch.testing.assert_close(together[name][row], value, rtol=1e-10, atol=1e-13)


def test_parameters_are_those_of_the_equations() -> None:
    e, h, a, v = 4, H, 2 * H, V
    units = 2 * 3 * h * (e + h + 2) + 3 * h * (e + h + 2) + 3 * h * (2 * h + h + 2)
    other = (2 * h + 1) * h + (2 * h + 1) * a + h * a + a + (e + 3 * h + 1) * e + (e + 1) * v
    model = network()
    assert sum(p.numel() for p in model.parameters()) == 2 * v * e + units + other


def test_parameters_start_as_pytorchs_own() -> None:
    """Uniform up to 1 / sqrt(hidden) in a GRU and 1 / sqrt(inputs) in a linear layer; word vectors are normal.

    At a fixed seed, some of many uniform values come close to the bound; six standard errors of the deviation.
    """
    model = build("cgru", vocabulary=500, embedding=16, hidden=25)
    assert isinstance(model, ConditionalGRU)
    initialise(model, 0)
    for unit in (model.encoder, model.first, model.second):
        for values in unit.parameters():
            assert 0.9 / 5 < values.abs().max() <= 1 / 5
    assert 0.9 / 4 < model.output.bias.abs().max() <= 1 / 4
    for words in (model.source, model.target):
        assert abs(words.weight.std().item() - 1) < 6 / (2 * words.weight.numel()) ** 0.5


def test_refusals() -> None:
    with pytest.raises(ValueError, match="hidden=0 must be at least 1"):
        build("cgru", vocabulary=7, embedding=4, hidden=0)
    with pytest.raises(ValueError, match="vocabulary=0 must be at least 1"):
        build("cgru", vocabulary=0, embedding=4, hidden=3)
    with pytest.raises(ValueError, match=r"missing a required (keyword-only )?argument: 'vocabulary'"):
        build("cgru", embedding=4, hidden=3)
