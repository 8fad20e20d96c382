"""Writes ``docs/your-own-training.md``: how many lines of a plain script each example changes, from the files.

``python docs/make_own_training.py`` writes the page; a test compares it with what this makes.
"""

from __future__ import annotations

import ast
import difflib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLAIN = "mnist_plain.py"
PAGE = ROOT / "docs" / "your-own-training.md"


class Change(NamedTuple):
    """An example, what it turns the plain script into, and the most lines that this may take."""

    file: str
    what: str
    most: int


CHANGES = (
    Change("mnist_sma.py", "synchronous model averaging, four learners; over two processes the same file", 3),
    Change("isgd_closure.py", "ISGD", 6),
    Change("torchrun_delayed.py", "gradients one update late over `torchrun`", 4),
    Change("softsync_cluster.py", "a parameter server and its learners", 6),
)


def code(file: str) -> list[str]:
    """The lines after the docstring without their indentation, which is not counted, and without empty ones."""
    text = (ROOT / "examples" / file).read_text()
    docstring = ast.parse(text).body[0]
    assert docstring.end_lineno is not None
    return [line.strip() for line in text.splitlines()[docstring.end_lineno :] if line.strip()]


def difference(file: str) -> tuple[int, list[str]]:
    """Lines changed (a line replaced counts once) from the plain script, and the diff's own lines."""
    plain, other = code(PLAIN), code(file)
    count, shown = 0, []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, plain, other, autojunk=False).get_opcodes():
        if tag != "equal":
            count += max(b - a, d - c)
            shown += [f"- {line}" for line in plain[a:b]] + [f"+ {line}" for line in other[c:d]]
    return count, shown


def page() -> str:
    """The page in Markdown."""
    plain = (ROOT / "examples" / PLAIN).read_text().splitlines()
    text = [
        "# In your own training",
        "",
        "`suite.optim` holds the papers' algorithms as optimisers: `SMA`, `EASGD`, `ISGD`, `DelayedSGD`, `Softsync`",
        "and `parameter_server`. They take the module where torch's take its parameters, and then `zero_grad`,",
        "`backward`, `step`, `param_groups`, `state_dict` and torch's schedulers work as usual; `opt.average()` is",
        "the model to test. [What each supports](support-matrix.md), and why not, is tried by the tests.",
        "",
        f"From `examples/{PLAIN}`, {len(plain)} lines of plain PyTorch:",
        "",
        "| example | turns it into | lines changed |",
        "|---|---|---|",
    ]
    found = {change: difference(change.file) for change in CHANGES}
    text += [f"| `{c.file}` | {c.what} | {count} |" for c, (count, _) in found.items()]
    text += ["", "Made from the files by `docs/make_own_training.py`; indentation is not counted.", ""]
    text += [
        "ISGD holds a batch's loss against those of the epoch before, so its batches must come in one fixed cycle",
        "(FCPR), the same examples in each: permute once, as the example does. With `shuffle=True` the chart takes",
        "the luck of a new draw for a batch that lags behind, and nothing notices.",
        "",
    ]
    for change, (_, lines) in found.items():
        text += [f"## `{change.file}`", "", "```diff", *lines, "```", ""]
    text += [
        "## Several processes",
        "",
        "`torchrun --nproc-per-node 2 mnist_sma.py` runs the same lines in two processes, on several nodes too. They",
        "meet when the optimiser is made and take up process 0's weights. From there on every process but the first",
        "draws random numbers of its own, so that a shuffling loader gives each its own order; `share(dataset)` is a",
        "process's part where the parts shall be disjoint. On GPUs put the model on `suite.optim.device()` first. A",
        "process that dies or stalls ends the others with `WorkerLost`, which names it.",
        "",
        "## To stop and go on",
        "",
        "`opt.save(folder, epoch=epoch)` and `opt.resume(folder)` keep everything but your own variables (frozen",
        "weights too), in every process its own; training goes on to the same bits. `torch.save(opt.state_dict())`",
        "and `save_file` do too, with the module's state and torch's random numbers saved beside them.",
        "",
        "After writing weights of your own into the module, `opt.take_up()` makes them those of all learners and",
        "of the centre. Without it a lone learner goes on from weights written in place; where several take turns,",
        "the next step is refused, unless they were written by `.data`, which cannot be seen.",
        "",
        "## What it costs",
        "",
        "`python -m benchmarks.optim_update` times whole updates beside `torch.optim.SGD(fused=True)`. For one",
        "learner on LeNet with 16 pictures and one thread they took 1.01 to 1.04 times as long with SMA, EASGD,",
        "ISGD, DelayedSGD and Softsync (medians of 24 rounds on a busy CPU). Four learners of SMA in turn took 1.09",
        "times as long for a batch, and a delay of one update 1.10 times, as that gradient is copied to be kept. SMA",
        "and EASGD need a C++ compiler for this, which is used once; without one the bits are the same, and step and",
        "averaging together take four times as long as a step of SGD alone.",
        "",
        "## The batch size",
        "",
        "`choose_batch(make_model, loss, data, rate=..., threshold=..., budget=600)` measures which batch size",
        "trains in the least time; `examples/choose_batch.py` does it for torchvision's ResNet-18. `choice.frame()`",
        "is the table with intervals, `choice.plot()` the picture.",
    ]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
