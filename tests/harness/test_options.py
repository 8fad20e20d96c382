"""What commands hand on of their options, and what they do where none are given."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.cli import main
from suite.commands.submit import Request
from suite.data import catalogue

STORE, REPORT = Path("runs.store"), Path("report")
Sgd = Callable[..., SimpleNamespace]


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in, and names for the runs that are judged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("suite.papers.evidence.with_committed", lambda store: ("all", store))
    monkeypatch.setattr("suite.papers.evidence.of_user", lambda store: ("mine", store))
    monkeypatch.setattr("suite.papers.evidence.ids_of_user", lambda store, **_: {"a"})


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sgd:
    """Runs the command line in this process."""

    def made(*words: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["sgd-suite", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        stdout, stderr = capsys.readouterr()
        return SimpleNamespace(exit_code=ended.value.code, stdout=stdout, stderr=stderr)

    return made


RUN = "run isgd --profile paper --store s --data d --device cpu --workers 1 --budget 1"
HANDED = {
    "run": ("run.run_selection", "run --profile smoke", ([], "smoke", STORE, None, "auto", 1, None),
            {"wait": True, "share": None, "memory": None, "seeds": None}),
    "run, all said": (
        "run.run_selection",
        f"{RUN} --no-wait --share 0/1 --memory 1 --seeds 1",
        (["isgd"], "paper", Path("s"), Path("d"), "cpu", 1, 1.0),
        {"wait": False, "share": (0, 1), "memory": 1, "seeds": 1},
    ),
    "run on an engine": ("submit.submit_selection", "run --profile smoke --on x",
                         ([], "smoke", STORE, None, "auto", 1, Request("x", None, None, False, False)), {}),
    "run on an engine, all said": (
        "submit.submit_selection",
        "run isgd --profile smoke --on x --jobs 1 --engine-options o.toml --dry-run --wait",
        (["isgd"], "smoke", STORE, None, "auto", 1, Request("x", 1, Path("o.toml"), True, True)),
        {},
    ),
    "reproduce": ("reproduce.reproduce_selection", "reproduce",
                  ([], "smoke", STORE, None, "auto", 1, None, REPORT, False), {}),
    "reproduce, all said": (
        "reproduce.reproduce_selection",
        "reproduce isgd --profile paper --store s --workers 2 --budget 5 --out o --accept",
        (["isgd"], "paper", Path("s"), None, "auto", 2, 5.0, Path("o"), True),
        {},
    ),
    "check": ("check.check_selection", "check", ([], None, ("all", None), {"a"}),
              {"as_json": False, "junit_path": None, "verbose": False}),
    "check, all said": (
        "check.check_selection",
        "check isgd --profile smoke --store s --only-mine --verbose --json --junit f.xml",
        (["isgd"], "smoke", ("mine", Path("s")), {"a"}),
        {"as_json": True, "junit_path": Path("f.xml"), "verbose": True},
    ),
    "falsify": ("falsify.falsify_selection", "falsify", ([], ("all", None), False), {}),
    "falsify, all said": ("falsify.falsify_selection", "falsify isgd --store s --json",
                          (["isgd"], ("all", Path("s")), True), {}),
}  # fmt: skip


@pytest.mark.parametrize(("place", "words", "arguments", "named"), HANDED.values(), ids=HANDED)
@pytest.mark.parametrize("code", [0, 1])
def test_a_command_hands_its_options_on_and_ends_with_the_code_of_what_it_called(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, place: str, words: str, arguments: tuple, named: dict, code: int
):
    given: list[Any] = []
    monkeypatch.setattr(f"suite.commands.{place}", lambda *some, **more: (given.append((some, more)), code)[1])
    assert call(*words.split()).exit_code == code
    assert given == [(arguments, named)]


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("figures", ([], ("all", None), Path("figures"), ["svg"], None, None)),
        ("figures isgd --store s --only-mine --out o --format pdf --profile smoke --data csv",
         (["isgd"], ("mine", Path("s")), Path("o"), ["pdf"], "smoke", "csv")),
    ],
)  # fmt: skip
def test_figures_are_told_one_by_one_on_stderr(call: Sgd, monkeypatch: pytest.MonkeyPatch, words: str, arguments):
    given: list[Any] = []
    draw = lambda *some: (given.append(some), ["a.svg drawn", "b lacks runs"])[1]
    monkeypatch.setattr("suite.report.drawing.draw_selection", draw)
    done = call(*words.split())
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "a.svg drawn\nb lacks runs\n")
    assert given == [arguments]


@pytest.mark.parametrize("faults", [(), ("isgd/fig5a: programming error",)])
def test_a_report_is_a_site_unless_one_file_is_asked_for(call: Sgd, monkeypatch: pytest.MonkeyPatch, faults):
    class Site(SimpleNamespace):
        def __str__(self) -> str:
            return "2 pages written"

    def write_site(source, out, *_) -> Site:
        return Site(index=f"{out} of {source[0]}", faults=faults)

    monkeypatch.setattr("suite.report.site.build.write_site", write_site)

    def write_report(source, out, tell) -> str:
        for fault in faults:
            tell(fault)
        return f"one file in {out} of {source[0]}"

    monkeypatch.setattr("suite.report.page.write_report", write_report)
    site, single = call("report"), call("report", "--single", "--out", "o")
    named = "".join(f"{fault}\n" for fault in faults)
    assert (site.stdout, site.stderr) == ("report of all\n", f"2 pages written\n{named}")
    assert (single.stdout, single.stderr) == ("one file in o of all\n", named)
    assert site.exit_code == single.exit_code == len(faults)


@pytest.mark.parametrize(("words", "given"), [("refresh", ([], False)), ("refresh isgd --check", (["isgd"], True))])
def test_refresh_says_what_it_renewed(call: Sgd, monkeypatch: pytest.MonkeyPatch, words: str, given: tuple):
    monkeypatch.setattr("suite.commands.refresh.refresh", lambda papers, *, check: (3, [f"{(papers, check)}", "b"]))
    done = call(*words.split())
    assert (done.exit_code, done.stdout) == (3, f"{given}\nb\n")


@pytest.mark.parametrize(
    ("words", "given"),
    [(["register", "--because", "so"], ("so", [])), (["register", "isgd", "--because", "so"], ("so", ["isgd"]))],
)
def test_register_says_a_sentence_for_each_home(call: Sgd, monkeypatch: pytest.MonkeyPatch, words, given):
    monkeypatch.setattr("suite.commands.register.register", lambda *some: [f"{some}", "b"])
    assert call(*words).stdout == f"{given}\nb\n"


@pytest.mark.parametrize(
    ("words", "given"), [(["list"], ([], None)), (["list", "isgd", "--store", "s"], (["isgd"], "s"))]
)
def test_list_says_a_line_for_each_artifact_or_one_document(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, words: list[str], given: tuple
):
    listing = lambda selectors, store: [[selectors, store and str(store)]]
    monkeypatch.setattr("suite.commands.list_.listing", listing)
    monkeypatch.setattr("suite.commands.list_.lines", lambda rows, columns: [*map(str, rows), "b"])
    assert call(*words).stdout == f"{[*given]}\nb\n"
    assert json.loads(call(*words, "--json").stdout) == [[*given]]


@pytest.mark.parametrize(("red", "code"), [(False, 0), (True, 1)])
def test_explain_reads_all_runs_unless_the_users_alone_count(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, red: bool, code: int
):
    found = lambda claim, source: (None, "artifact", SimpleNamespace(red=red))
    monkeypatch.setattr("suite.commands.explain.found", found)
    monkeypatch.setattr("suite.commands.explain.lines", lambda artifact, verdict, source: [artifact, source[0]])
    plain, mine = call("explain", "a/b/c"), call("explain", "a/b/c", "--only-mine")
    assert [(done.exit_code, done.stdout) for done in (plain, mine)] == [
        (code, "artifact\nall\n"),
        (code, "artifact\nmine\n"),
    ]


@pytest.mark.parametrize("either_way", [False, True])
@pytest.mark.parametrize(("regressions", "code"), [([], 0), (["slower"], 1)])
def test_compare_ends_with_1_where_something_got_worse(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, either_way: bool, regressions: list[str], code: int
):
    compare = lambda base, new, *, either_way: {"regressions": regressions, "of": f"{base} {new} {either_way}"}
    monkeypatch.setattr("suite.runs.archive.open_runs", str)
    monkeypatch.setattr("suite.runs.comparison.compare_runs", compare)
    monkeypatch.setattr("suite.runs.comparison.lines", lambda found: [found["of"], "b"])
    words = ["compare", "x", "y", *(["--either-way"] if either_way else [])]
    text, document = call(*words), call(*words, "--json")
    assert (text.exit_code, document.exit_code) == (code, code)
    assert text.stdout == f"x y {either_way}\nb\n"
    assert json.loads(document.stdout) == {"regressions": regressions, "of": f"x y {either_way}"}


def state(queued: int, running: int) -> dict[str, Any]:
    counts = {"queued": queued, "running": running}
    return {"store": "s", "counts": counts, "runs": {}, "jobs": {}, "seconds_left": None}


def test_status_is_told_again_until_nothing_is_left(call: Sgd, monkeypatch: pytest.MonkeyPatch):
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    for words, looks in (([], 1), (["--watch"], 4), (["--watch", "--json"], 1)):
        states = iter([state(1, 0), state(1, 1), state(0, 1), state(0, 0)])
        monkeypatch.setattr("suite.commands.status.status", lambda store, states=states: next(states))
        done = call("status", *words)
        assert len(list(states)) == 4 - looks
        assert len(naps) == looks - 1
        assert done.stdout.count("queued") == looks
        assert done.stdout.startswith("{") == ("--json" in words)
        del naps[:]


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two data sets of three are here."""
    monkeypatch.setattr(catalogue, "DATASETS", dict.fromkeys(("digits", "mnist", "imagenet")))
    monkeypatch.setattr(catalogue, "available", lambda name, root: (name != "mnist", f"{name} in {root}"))


@pytest.mark.usefixtures("data")
def test_data_sets_are_listed_with_their_places(call: Sgd):
    assert call("data", "list", "--data", "d").stdout.splitlines() == [
        "digits           here     digits in d",
        "mnist            missing  mnist in d",
        "imagenet         here     imagenet in d",
    ]
    rows = json.loads(call("data", "list", "--json").stdout)
    assert rows[1] == {"name": "mnist", "here": False, "where": "mnist in None"}


def test_a_download_says_where_it_went(call: Sgd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(catalogue, "fetch", lambda name, root: Path("d") / name if name == "mnist" else None)
    assert call("data", "fetch", "mnist").stdout == "d/mnist\n"
    assert call("data", "fetch", "digits").stdout == "digits is embedded: nothing to download\n"


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("names", "wrong", "code"),
    [
        ((), "", 0),
        ((), "imagenet", 1),
        (("mnist",), "imagenet", 0),
        (("mnist",), "mnist", 1),
        (("mnist", "digits"), "", 0),
    ],
)
def test_the_data_that_are_here_or_those_that_are_named_are_verified(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], wrong: str, code: int
):
    def verify(name: str, root: Path | None) -> SimpleNamespace:
        check = SimpleNamespace(passed=name != wrong, name="labels", detail="10")
        return SimpleNamespace(name=name, passed=name != wrong, checks=[check])

    monkeypatch.setattr("suite.data.verify.verify", verify)
    done = call("data", "verify", *names)
    assert done.exit_code == code
    told = [line.split() for line in done.stdout.splitlines()]
    read = names or ["digits", "imagenet"]
    assert told == [[each, "WRONG" if each == wrong else "ok", "labels:", "10"] for each in read]


@pytest.mark.parametrize(("store", "code"), [({}, 0), ({"store": {"ok": True}}, 0), ({"store": {"ok": False}}, 1)])
def test_a_store_that_cannot_be_shared_ends_a_diagnosis_with_1(
    call: Sgd, monkeypatch: pytest.MonkeyPatch, store: dict[str, Any], code: int
):
    monkeypatch.setattr("suite.commands.doctor.diagnose", lambda data, place: {"data": str(data), **store})
    monkeypatch.setattr("suite.commands.doctor.lines", lambda facts: ["a", "b"])
    text, document = call("doctor"), call("doctor", "--json")
    assert (text.exit_code, text.stdout) == (code, "a\nb\n")
    assert (document.exit_code, json.loads(document.stdout)) == (code, {"data": "None", **store})


def test_a_new_paper_is_told_line_by_line(call: Sgd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("suite.commands.new_paper.new_paper", lambda name, into: [name, str(into)])
    assert call("new-paper", "foo", "--into", "d").stdout == "foo\nd\n"


@pytest.mark.parametrize(
    "words",
    [
        *(f"run --profile smoke {option}" for option in ("--jobs 2", "--engine-options f", "--dry-run", "--wait")),
        *(
            f"run --profile smoke --on slurm {option}"
            for option in ("--budget 5", "--share 0/2", "--memory 5", "--seeds 2", "--no-wait")
        ),
        *(f"run --profile smoke --share {share}" for share in ("2/2", "1", "a/2", "0/b", "-1/2", "/")),
    ],
)
def test_options_that_do_not_go_together_or_say_nothing_are_refused(call: Sgd, words: str):
    done = call(*words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert not Path("runs.store").exists()


def test_the_shells_completion_can_be_installed(call: Sgd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "--install-completion" in call("--help").stdout
