"""The line on a terminal that says where the choice of a batch size stands."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from suite.batch_size.choice import Method, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# Whoever gives no callback is shown the progress.
shown = Method(None, (0,), 0.5, 100, None, None).tell


def counting(seconds, choice=None):
    return Progress("counting", 8, 2, 6, 150, seconds, choice)


def chosen(seconds):
    return Progress("chosen", 16, 1, 1, 0, seconds, SimpleNamespace(batch=16, tied=lambda: ()))


@pytest.fixture
def terminal(monkeypatch):
    made = Terminal()
    monkeypatch.setattr("suite.batch_size.choice.sys", SimpleNamespace(stderr=made))
    yield made
    shown(chosen(0.0))  # the next test's first line is one of a new choice


def test_a_terminal_is_shown_what_is_being_done(terminal):
    shown(counting(3.2))
    shown(counting(5.0, SimpleNamespace(batch=32)))
    shown(chosen(7.0))
    start = "\r\x1b[K"
    assert terminal.getvalue() == (
        f"{start}3 s  counting 2/6: batch size 8, update 150"
        f"{start}5 s  counting 2/6: batch size 8, update 150, so far batch size 32"
        f"{start}7 s  chose batch size 16\n"
    )


def test_there_are_at_most_two_lines_a_second_and_the_answer_is_always_one(terminal):
    for seconds in (0.0, 0.0, 0.25, 0.4375, 0.5, 0.75, 1.25):
        shown(counting(seconds))
    shown(chosen(1.25))
    assert terminal.getvalue().count("counting") == 3
    assert terminal.getvalue().endswith("1 s  chose batch size 16\n")


def test_a_new_choice_begins_with_a_line_of_its_own(terminal):
    shown(counting(9.0))
    shown(chosen(9.25))
    shown(counting(9.5))
    assert terminal.getvalue().count("counting") == 2


def test_a_choice_that_broke_off_does_not_silence_the_next(terminal):
    """Its clock begins anew, before the last line of the one that ended in an error."""
    shown(counting(90.0))
    shown(counting(1.0))
    assert terminal.getvalue().count("counting") == 2


def test_a_file_is_shown_nothing(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    shown(counting(1.0))
    shown(chosen(2.0))
    assert log.getvalue() == ""
