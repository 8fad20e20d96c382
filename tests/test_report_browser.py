"""Report and site in headless Chromium: no error, no request, no overflow at the widths of a phone and two laptops.

Driven over two pipes with the DevTools protocol, so that nothing but the browser itself is needed.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_paper import fill, registered
from test_report_drawings import contrast

from ci import accessibility
from suite.report.site.build import write_site
from suite.report.site.single import joined

CHROMIUM = accessibility.browser()
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome on PATH"),
]
SECONDS = 60  # for one answer of the browser; generous because the machine may be busy

# The browser reads commands from file descriptor 3 and writes to 4; this moves our pipe ends there.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, target in zip(ends, (3, 4)):
    os.dup2(end, target)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser tab that remembers every event it was told."""

    def __init__(self, commands: int, replies: int):
        self._commands, self._replies = commands, replies
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def open(self) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come first are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def visit(self, url: str) -> None:
        self.events.clear()
        self.send("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def named(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") in methods]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            assert time.monotonic() < end, "the browser did not answer"
            with contextlib.suppress(BlockingIOError):
                received = os.read(self._replies, 1 << 20)
                assert received, "the browser has gone"
                self._buffer += received
                continue
            time.sleep(0.005)
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    os.set_blocking(from_read, False)
    assert CHROMIUM is not None
    profile = tmp_path_factory.mktemp("profile")
    switches = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]
    launch = [sys.executable, "-c", LAUNCH, str(to_read), str(from_write), CHROMIUM, *switches]
    process = subprocess.Popen(launch, pass_fds=(to_read, from_write), stderr=subprocess.DEVNULL)
    os.close(to_read)
    os.close(from_write)
    try:
        tab = Browser(to_write, from_read)
        tab.open()
        yield tab
    finally:
        os.close(to_write)  # the browser leaves when its commands end
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(from_read)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    with registered(tmp_path_factory.mktemp("home")):
        index, made = write_site(fill(tmp_path_factory.mktemp("runs")), tmp_path_factory.mktemp("site"))
    (index.parent / "report.html").write_text(joined(made.files), encoding="utf-8")
    return index.parent


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_the_site_in_a_browser(browser, site, width, scheme):
    browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.send(
        "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 700
    )
    for page in ("index.html", "fake.html", "fake/fig1.html", "report.html"):
        browser.visit((site / page).as_uri())
        assert browser.value("document.documentElement.scrollWidth") <= width, page
        ground, ink = (browser.value(f"getComputedStyle(document.body).{p}") for p in ("backgroundColor", "color"))
        assert contrast(channels(ground), channels(ink)) > 10, "the style sheet is allowed and read"
        assert (sum(channels(ground)) < 200) == (scheme == "dark")
        faults = [e for e in browser.named("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
        assert faults + browser.named("Runtime.exceptionThrown", "Runtime.consoleAPICalled") == []
        requests = [event["request"]["url"] for event in browser.named("Network.requestWillBeSent")]
        assert [url for url in requests if not url.startswith((site.as_uri(), "data:"))] == []
    browser.visit((site / "fake/fig1.html").as_uri())
    assert browser.value("document.querySelector('figure img').naturalWidth") > 100
    assert browser.value("document.querySelector('figure img').getBoundingClientRect().right") <= width
    browser.visit((site / "report.html").as_uri())
    assert browser.value("document.getElementById('count').textContent + document.forms[0].hidden") == "false"


def test_a_figure_tells_the_point_under_the_pointer_and_grows(browser, site):
    """Where the picture draws a curve's first point its values are told, which are those of the table."""
    browser.visit((site / "fake/fig1.html").as_uri())
    picture = (site / "fake/fig1.svg").read_text(encoding="utf-8")
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)[0])
    rows = csv.DictReader((site / "fake/fig1.csv").read_text(encoding="utf-8").splitlines())
    first = next(row for row in rows if row["series"].startswith("seed"))
    [[label, _, _, [[left, top, x, y], *_]], *_] = json.loads(browser.value("document.images[0].dataset.curves"))
    assert (label, float(x), float(y)) == (first["series"], float(first["x"]), pytest.approx(float(first["y"]), 1e-3))
    starts = [tuple(map(float, place)) for place in re.findall(r' d="M ([\d.]+) ([\d.]+) L', picture)]
    at = (left / 1e4 * width, top / 1e4 * height)
    assert any(math.dist(at, start) < 0.1 for start in starts)
    box = json.loads(browser.value("JSON.stringify(document.images[0].getBoundingClientRect())"))
    spot = {"x": box["left"] + left / 1e4 * box["width"] + 3, "y": box["top"] + top / 1e4 * box["height"]}
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", **spot)
    assert browser.value("document.querySelector('.point').textContent") == (
        f"{label}, time (epochs): {x}, training loss (nats): {y}"
    )
    ring = json.loads(browser.value("JSON.stringify(document.querySelector('.point').getBoundingClientRect())"))
    assert math.dist((ring["x"] + ring["width"] / 2 + 3, ring["y"] + ring["height"] / 2), spot.values()) < 1.5
    for kind in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **spot)
    assert browser.value("document.images[0].getBoundingClientRect().width") > 1.9 * box["width"]
    assert browser.value("document.querySelector('.point').hidden")


def test_the_index_is_searched_and_filtered(browser, site):
    rows = "[...document.querySelectorAll('tr[data-claims]')]"
    shown = f"{rows}.filter(e => !e.hidden).map(e => e.querySelector('code').textContent)"
    choose = "document.forms[0].elements.{}.value = '{}'; document.forms[0].dispatchEvent(new Event('input')); 0"
    browser.visit((site / "index.html").as_uri())
    assert len(browser.value(shown)) == 4
    browser.value(choose.format("words", "STALENESS better"))
    assert browser.value(shown) == ["fake/fig1"]
    browser.value(choose.format("words", ""))
    browser.value(choose.format("verdict", "not run"))
    assert browser.value(shown) == ["fake/fig2", "fake/fig3"]
    browser.value(choose.format("need", "cluster"))
    assert browser.value(shown) == ["fake/fig2"]
    assert browser.value("document.getElementById('count').textContent") == "1 of 4 artifacts"
    browser.visit(browser.value("location.href").replace("index.html", "about.html"))
    browser.visit((site / "index.html").as_uri() + "#?verdict=paper+contradicts+itself")
    assert browser.value(shown) == ["fake/table1"]


def channels(colour: str) -> list[int]:
    """Of a computed ``rgb(r, g, b)``."""
    return [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
