"""Fingerprints of code: a move, a split or a docstring changes nothing, an edit of anything reached does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from suite.papers.registry import PAPERS, paper
from suite.runner.cost import TRAIN
from suite.runs import fingerprint as fingerprints
from suite.runs.fingerprint import UNKNOWN, Code, present

BODY = '''
"""A module."""
from suite.tools import scale
import suite.constants as constants
import numpy as np

FACTOR = 2

def body(x: int) -> int:
    """What it does."""
    # why
    return scale(x, FACTOR) + constants.OFFSET + np.sum(x)

def unused():
    return 3
'''
BY_NAME = BODY.replace("import suite.constants as constants", "from suite.constants import OFFSET").replace(
    "constants.OFFSET", "OFFSET"
)
TOOLS = "def scale(x, by):\n    return twice(x) * by\ndef twice(x):\n    return x + x if x else scale(x, 0)\n"
FILES = {"suite/body.py": BODY, "suite/tools.py": TOOLS, "suite/constants.py": "OFFSET = 5\n"}


def code(changes: Mapping[str, str] | None = None) -> Code:
    return Code({**FILES, **(changes or {})}.get)


def fingerprint(changes: Mapping[str, str] | None = None, place: str = "suite.body:body") -> str:
    return code(changes).fingerprint(place)


@pytest.mark.parametrize(
    "changes",
    [
        {"suite/body.py": BODY.replace("What it does", "Something else").replace("# why", "# because")},
        {"suite/body.py": BODY.replace("x: int) -> int", "x)")},
        {"suite/body.py": BODY.replace("return 3", "return 4")},
        {"suite/tools.py": TOOLS.replace("twice", "doubled")},
        {"suite/body.py": BODY.replace("import numpy as np", "import numpy").replace("np.sum", "numpy.sum")},
        {
            "suite/body.py": BODY.replace("suite.tools", "suite.rooms.tools"),
            "suite/rooms/tools.py": "from suite.rooms.other import twice\n" + TOOLS.partition("def twice")[0],
            "suite/rooms/other.py": "def twice(x):\n    from suite.rooms.tools import scale\n"
            "    return x + x if x else scale(x, 0)\n",
            "suite/rooms/__init__.py": "",
        },
        {"suite/body.py": BY_NAME},
    ],
    ids=["words", "annotations", "unreached", "renamed", "alias", "moved and split", "imported by name"],
)
def test_what_computes_the_same_has_the_same_fingerprint(changes: dict[str, str]):
    assert fingerprint(changes) == fingerprint()


@pytest.mark.parametrize(
    "changes",
    [
        {"suite/constants.py": "OFFSET = 6\n"},
        {"suite/tools.py": TOOLS.replace("x + x", "x + x + 0")},
        {"suite/tools.py": TOOLS.replace("scale(x, 0)", "twice(x)")},
        {"suite/body.py": BODY.replace("FACTOR = 2", "FACTOR = 3")},
        {"suite/body.py": BODY.replace("scale(x, FACTOR)", "scale(FACTOR, x)")},
        {"suite/body.py": BODY.replace("import numpy as np", "import torch as np")},
    ],
    ids=["constant", "two calls away", "another of a circle", "global", "exchanged arguments", "another package"],
)
def test_an_edit_of_what_is_reached_changes_it(changes: dict[str, str]):
    assert fingerprint(changes) != fingerprint()


def test_exchanged_references_differ():
    both = "def f(x):\n    return x + 1\ndef g(x):\n    return x * 2\ndef h(x):\n    return {}\n"
    one, other = (code({"suite/m.py": both.format(text)}) for text in ("f(x) - g(x)", "g(x) - f(x)"))
    assert one.fingerprint("suite.m:h") != other.fingerprint("suite.m:h")


def test_an_import_inside_a_function_comes_before_the_modules_own_names():
    text = "def made():\n    return 1\ndef thunk():\n    from suite.tools import scale as made\n    return made\n"
    found = code({"suite/m.py": text})
    assert found.closure(("suite.m", "thunk")) == {
        ("suite.m", "thunk"),
        ("suite.tools", "scale"),
        ("suite.tools", "twice"),
    }


@pytest.mark.parametrize("inside", ["def other(y):\n        return y", "class other(int):\n        size = 1"])
def test_a_definition_inside_a_function_comes_before_the_modules_own(inside: str):
    text = f"def body(x):\n    {inside}\n    return other(x)\n\ndef other(y):\n    return "
    one, two = ({"suite/body.py": text + last} for last in ("1", "2"))
    assert fingerprint(one) == fingerprint(two)
    assert fingerprint({"suite/body.py": one["suite/body.py"].replace(inside, "pass")}) != fingerprint(
        {"suite/body.py": two["suite/body.py"].replace(inside, "pass")}
    )


def test_a_place_named_in_a_text_is_followed():
    table = 'TABLE = {"a": "suite.tools:twice"}\ndef f(name):\n    return TABLE[name]\n'
    before = code({"suite/m.py": table}).fingerprint("suite.m:f")
    edited = code({"suite/m.py": table, "suite/tools.py": TOOLS.replace("x + x", "3 * x")})
    assert edited.fingerprint("suite.m:f") != before


def test_an_unknown_place_is_named():
    with pytest.raises(KeyError, match=r"suite\.body:nothing"):
        code().fingerprint("suite.body:nothing")


def test_every_registered_experiment_has_a_fingerprint():
    kinds = {name: kind for which in PAPERS for name, kind in paper(which).experiments.items()} | {"train": TRAIN}
    assert [name for name, kind in kinds.items() if kind.code == UNKNOWN] == []
    assert len({kind.code for kind in kinds.values()}) == len(kinds)


def test_the_fingerprint_of_training_sees_every_algorithm():
    reached = {module for module, _ in present().closure(("suite.training.loop", "train"))}
    assert {f"reference_impls.{name}" for name in ("isgd", "rudra", "matex_agd", "crossbow")} <= reached
    assert not any(module.startswith(("suite.report", "suite.commands")) for module in reached)


def test_a_fingerprint_is_read_again_until_a_source_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is remembered is what is computed; an edit anywhere in what counts, even unreached, computes anew."""
    package = tmp_path / "elsewhere"
    package.mkdir()
    (package / "__init__.py").write_text("def body(x):\n    return x\n")
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fingerprints, "SCOPE", {"elsewhere": tmp_path})
    computed: list[str] = []

    def anew() -> Code:
        computed.append("anew")
        return Code(fingerprints.working_files)

    monkeypatch.setattr(fingerprints, "present", anew)
    before = Code(fingerprints.working_files).fingerprint("elsewhere:body")
    assert [fingerprints.fingerprint("elsewhere:body") for _ in range(2)] == [before, before]
    assert computed == ["anew"]
    (package / "__init__.py").write_text("def body(x):\n    return x + 1\n")
    fingerprints._sources.cache_clear()
    assert fingerprints.fingerprint("elsewhere:body") == Code(fingerprints.working_files).fingerprint(
        "elsewhere:body"
    )
    assert fingerprints.fingerprint("elsewhere:body") != before
    with pytest.raises(KeyError, match="elsewhere:nothing"):
        fingerprints.fingerprint("elsewhere:nothing")
