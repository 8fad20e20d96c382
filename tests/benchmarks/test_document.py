"""A benchmark's document: whole or refused, added to workload by workload, and turned into a table of ratios."""

from __future__ import annotations

import json

import pytest

from benchmarks.document import Book, entry
from suite.report import speed
from suite.report.speed import ratio, table
from suite.speed.baselines import GateError, read

FLOOR = {"flops_per_second": 100.0, "bytes_per_second": 10.0, "copies": [[100, 10.0]]}
SIDES = {
    "ours": {"seconds": [2.0, 2.0, 4.0], "processor": [2.0, 2.0, 2.0], "threads": 1},
    "plain, 1 thread": {"seconds": [4.0, 6.0, 16.0], "processor": [4.0, 4.0, 4.0], "threads": 1},
    "plain fused, 2 threads": {"seconds": [4.0, 5.0, 4.0], "processor": None, "threads": 2},
    "compiled, 1 thread": {"seconds": [1.0, 1.0, 2.0], "processor": [1.0, 1.0, 1.0], "threads": 1},
    "plain foreach, 1 thread": {"not_available": "9.0 times as long as the fastest"},
}


@pytest.fixture
def workload():
    return entry("training", SIDES, examples=16, flops=100.0, bytes=20.0)


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "benchmark.json", "cpu")


def test_the_best_rival_is_the_one_compared_and_rounds_are_paired(workload):
    assert ratio(workload) == {"rival": "compiled, 1 thread", "ours": "ours", "median": 0.5, "quartiles": [0.5, 0.5]}


def test_the_table_holds_what_the_samples_say(book, workload):
    book.add_floor("1", FLOOR)
    book.add("LeNet", workload)
    lines = table(book.document).splitlines()
    row = "| LeNet | 0.50 x | 0.50 to 0.50 | compiled, 1 thread | plain foreach, 1 thread [1] | 100% | copies |"
    assert lines[4] == row
    assert lines[5:] == ["", "Not timed: [1] 9.0 times as long as the fastest."]


def test_a_document_grows_and_is_whole_at_any_time(book, workload):
    book.add_floor("1", FLOOR)
    for name in ("first", "second"):
        book.add(name, workload)
        assert list(read(book.path)["workloads"])[-1] == name
    again = Book(book.path, "cpu")
    again.add("third", workload)
    assert list(read(book.path)["workloads"]) == ["first", "second", "third"]
    assert read(book.path) == again.document
    assert [p.name for p in book.path.parent.iterdir()] == ["benchmark.json"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("machine", "class"), "other", "measured on other"),
        (("versions", "torch"), "0.1", "other versions of packages"),
        (("format",), 2, "of format 1"),
    ],
)
def test_a_document_of_another_machine_or_version_is_not_gone_on_with(book, place, value, said):
    book.write()
    document = json.loads(book.path.read_text())
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    book.path.write_text(json.dumps(document))
    with pytest.raises(GateError, match=said):
        Book(book.path, "cpu")


def file_stem(document):
    """What a committed document is called: its machine class and the torch that was timed."""
    major, minor = document["versions"]["torch"].split(".")[:2]
    return f"{document['machine']['class']}.torch-{major}.{minor}"


def test_committed_documents_are_valid_and_named_by_their_machine_and_torch():
    found = speed.committed()
    stems = sorted((path.stem for path in speed.RESULTS.glob("*.json")), reverse=True)
    assert stems == [file_stem(document) for document in found]
