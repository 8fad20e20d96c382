"""Which names a fingerprint follows: imports of every form, attributes of modules, and no bound names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from suite.runs import fingerprint as fingerprints
from suite.runs.fingerprint import DIGITS, Code, include, working_files

TOOLS = "def scale(x):\n    return x + 1\ndef other(x):\n    return x - 1\nSTEP = 3\n"
TREE = {
    "suite/__init__.py": "",
    "suite/tools.py": TOOLS,
    "suite/rooms/__init__.py": "",
    "suite/rooms/inner.py": "DEPTH = 7\n",
}
Place = tuple[str, str]


def code(text: str, changes: Mapping[str, str] | None = None, at: str = "suite/m.py") -> Code:
    return Code({**TREE, at: text, **(changes or {})}.get)


def reached(text: str, changes: Mapping[str, str] | None = None, at: str = "suite/m.py") -> set[Place]:
    """What ``f`` of a module of this text reaches, itself left out."""
    module = at.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return code(text, changes, at).closure((module, "f")) - {(module, "f")}


def same(one: str, other: str) -> bool:
    return code(one).fingerprint("suite.m:f") == code(other).fingerprint("suite.m:f")


READ = "\ndef f():\n    return A"
SCALE = {("suite.tools", "scale")}
ALL = {("suite.tools", "")} | {("suite.tools", name) for name in ("scale", "other", "STEP")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from suite.tools import scale\ndef f():\n    return scale", SCALE),
        ("from suite.tools import scale as by\ndef f():\n    return by", SCALE),
        ("from suite import tools\ndef f():\n    return tools.scale", SCALE),
        ("import suite.tools\ndef f():\n    return suite.tools.scale", SCALE),
        ("import suite.tools as t\ndef f():\n    return t.scale", SCALE),
        ("import suite\ndef f():\n    return suite.tools.scale.__name__", SCALE),
        ("from suite.rooms import inner\ndef f():\n    return inner.DEPTH", {("suite.rooms.inner", "DEPTH")}),
        ("from . import tools\ndef f():\n    return tools.scale", SCALE),
        ("from .tools import scale\ndef f():\n    return scale", SCALE),
        ("def f():\n    return 'suite.tools:scale'", SCALE),
        ("def f():\n    return 'see suite.tools:scale'", set()),
        ("def f():\n    return 'json:dumps', 'suite.tools:gone'", set()),
        ("import suite.tools as t\ndef f():\n    return t.gone", ALL),
        ("from suite.tools import scale\ndef f():\n    return f.scale", set()),
    ],
)
def test_an_import_of_any_form_is_followed(text: str, expected: set[Place]):
    assert reached(text) == expected


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("suite/rooms/deep.py", "from ..tools import scale\ndef f():\n    return scale"),
        ("suite/rooms/__init__.py", "from ..tools import scale\ndef f():\n    return scale"),
        ("suite/rooms/__init__.py", "from .. import tools\ndef f():\n    return tools.scale"),
        ("suite/rooms/deep.py", "from .inner import DEPTH as depth\nfrom ..tools import scale\ndef f():\n    scale"),
    ],
)
def test_points_before_a_module_lead_up_from_where_it_stands(at: str, text: str):
    assert reached(text, at=at) == SCALE


def test_a_package_is_read_where_no_module_has_its_name():
    text = "from suite.rooms import f as g\ndef f():\n    return g"
    assert reached(text, {"suite/rooms/__init__.py": "from .inner import DEPTH\ndef f():\n    return DEPTH\n"}) == {
        ("suite.rooms", "f"),
        ("suite.rooms.inner", "DEPTH"),
    }


def test_what_a_package_hands_on_is_followed_to_where_it_is_defined():
    handed = {"suite/rooms/__init__.py": "from suite.tools import scale as scaled\n"}
    assert reached("from suite.rooms import scaled\ndef f():\n    return scaled", handed) == SCALE


def test_a_module_that_imports_a_name_from_itself_is_no_circle():
    assert reached("from suite.m import gone\ndef f():\n    return gone") == set()


def test_a_module_as_a_value_stands_for_all_its_definitions():
    text = "from suite import tools\ndef f():\n    return vars(tools)"
    assert reached(text) == ALL
    before, after = (
        code(text, {"suite/tools.py": tools}).fingerprint("suite.m:f")
        for tools in (TOOLS, TOOLS.replace("STEP = 3", "STEP = 4"))
    )
    assert before != after
    turned = "\n".join(["STEP = 3", *TOOLS.splitlines()[:4]]) + "\n"
    assert code(text, {"suite/tools.py": turned}).fingerprint("suite.m:f") == before


@pytest.mark.parametrize(
    "text",
    [
        "from suite.tools import scale\ndef f(scale):\n    return scale",
        "from suite.tools import scale\ndef f():\n    scale = 1\n    return scale",
        "from suite.tools import scale\ndef f():\n    def scale():\n        return 1\n    return scale",
        "from suite.tools import scale\nclass f:\n    class scale:\n        pass\n    made = scale",
        "from suite import tools\ndef f(tools):\n    return tools.scale",
    ],
)
def test_a_name_that_is_bound_on_the_way_is_no_reference(text: str):
    assert reached(text) == set()


def test_names_of_one_definition_are_not_bound_in_the_next():
    """The second of two definitions of one name, as where a platform decides."""
    text = "from suite.tools import scale\ntry:\n    def f(scale):\n        return scale\n"
    assert reached(text + "except OSError:\n    def f():\n        return scale") == SCALE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A = 1\ndef f():\n    return A", "A = 2\ndef f():\n    return A"),
        ("A: int = 1\ndef f():\n    return A", "A: int = 2\ndef f():\n    return A"),
        ("A = 1\nA += 1\ndef f():\n    return A", "A = 1\nA += 2\ndef f():\n    return A"),
        ("A, B = 1, 2\ndef f():\n    return B", "A, B = 1, 3\ndef f():\n    return B"),
        ("if 1:\n A = 1\nelse:\n A = 2" + READ, "if 1:\n A = 1\nelse:\n A = 3" + READ),
        ("try:\n A = 1\nexcept E:\n A = 2" + READ, "try:\n A = 1\nexcept E:\n A = 3" + READ),
        ("try:\n x\nexcept E:\n y\nelse:\n A = 2" + READ, "try:\n x\nexcept E:\n y\nelse:\n A = 3" + READ),
        ("def f(x):\n    return x.a", "def f(x):\n    return x.b"),
        ("def f(x):\n    return x.a.b", "def f(x):\n    return x.b.a"),
        ("def f(x):\n    return (x + 1) * 2", "def f(x):\n    return x + 1 * 2"),
        ("def f(x):\n    return g(x)(1, 2)", "def f(x):\n    return g(x, 1)(2)"),
        ("def f(x):\n    return {None: x}", "def f(x):\n    return {**x}"),
        ("def f(x):\n    'a'\n    'b'", "def f(x):\n    'a'\n    'c'"),
        ("def f(x):\n    x\n    'a'", "def f(x):\n    x\n    'b'"),
        ("def f(x):\n    if x:\n        'a'", "def f(x):\n    if x:\n        'b'"),
        ("def f(x):\n    return ['a']", "def f(x):\n    return ['b']"),
        ("def f():\n    def g(): return 1", "def f():\n    def h(): return 1"),
        ("import suite.tools as t\ndef f():\n    t.scale.a", "import suite.tools as t\ndef f():\n    t.scale.b"),
        ("import json\ndef f():\n    return json", "import numpy\ndef f():\n    return numpy"),
        ("from os import path\ndef f():\n    return path", "from sys import path\ndef f():\n    return path"),
        ("def f(json):\n    return json", "def f(jso):\n    return jso"),
    ],
)  # fmt: skip
def test_what_computes_something_else_has_another_fingerprint(one: str, other: str):
    assert not same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(x):\n    'a'\n    return x", "def f(x):\n    'b'\n    return x"),
        ("async def f(x):\n    'a'\n    return x", "async def f(x):\n    'b'\n    return x"),
        ("class f:\n    'a'\n    def g(self):\n        'a'", "class f:\n    'b'\n    def g(self):\n        'b'"),
        ("def f(x):\n    y: int = x", "def f(x):\n    y: float = x"),
        ("A: int\ndef f():\n    return A", "A: float\ndef f():\n    return A"),
        ("import json\ndef f():\n    return json.dumps", "import json as j\ndef f():\n    return j.dumps"),
        ("from os import path\ndef f():\n    path", "from os import path as p\ndef f():\n    p"),
        ("def f():\n    import json\n    return json", "def f():\n    return json\nimport json"),
        ("def f(x):\n    g(x)\ndef g(x):\n    f(x)", "def f(x):\n    h(x)\ndef h(x):\n    f(x)"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    A = 1\ndef f():\n    A", "def f():\n    A"),
    ],
)  # fmt: skip
def test_words_annotations_and_aliases_change_nothing(one: str, other: str):
    assert same(one, other)


RING = "def f(x):\n    return a(x)\ndef a(x):\n    return b(x)\ndef b(x):\n    c(x)\ndef c(x):\n    return {}\n"


def test_an_edit_anywhere_in_a_circle_changes_all_of_it():
    for name in "fabc":
        one, other = (code(RING.format(f"f(x) {sign} 1")).fingerprint(f"suite.m:{name}") for sign in "+-")
        assert one != other


def test_the_order_of_questions_changes_no_answer():
    asked = code(RING.format("f(x)"))
    first = [asked.fingerprint(f"suite.m:{name}") for name in "cbaf"]
    assert first == [code(RING.format("f(x)")).fingerprint(f"suite.m:{name}") for name in "cbaf"]
    assert asked.fingerprint("suite.m:f", "suite.m:a") == code(RING.format("f(x)")).fingerprint(
        "suite.m:f", "suite.m:a"
    )


def test_a_fingerprint_has_sixteen_hex_digits_and_several_places_one():
    made = code("def f():\n    pass\ndef g():\n    return 1")
    found = [made.fingerprint(*places) for places in (["suite.m:f"], ["suite.m:f", "suite.m:g"], ["suite.m"])]
    assert {len(text) for text in found} == {16} == {DIGITS}
    assert set("".join(found)) <= set("0123456789abcdef")
    assert len(set(found)) == 3


@pytest.mark.parametrize("place", ["suite.m:gone", "suite.gone", "suite.gone:f", "json:dumps", "suite.m.f"])
def test_what_is_not_of_the_project_is_unknown(place: str):
    with pytest.raises(KeyError, match=place):
        code("def f():\n    pass").fingerprint(place)


def test_a_package_from_elsewhere_counts_once_it_is_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fingerprints, "SCOPE", dict(fingerprints.SCOPE))
    (tmp_path / "sixth").mkdir()
    (tmp_path / "sixth" / "__init__.py").write_text("from sixth.body import f\n", encoding="utf-8")
    (tmp_path / "sixth" / "body.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    (tmp_path / "seventh.py").write_text("def f():\n    return 7\n", encoding="utf-8")
    with pytest.raises(KeyError):
        Code(working_files).fingerprint("sixth:f")
    include("sixth", tmp_path)
    include("seventh", tmp_path)
    include("sixth", tmp_path / "elsewhere")
    assert Code(working_files).closure(("sixth.body", "f")) == {("sixth.body", "f")}
    assert Code(working_files).fingerprint("sixth:f") == Code(working_files).fingerprint("sixth.body:f")
    assert Code(working_files).fingerprint("seventh:f")
    assert working_files("sixth/gone.py") is None
