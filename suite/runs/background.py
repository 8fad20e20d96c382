"""What is done again and again in a thread while other work goes on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def every(seconds: float, act: Callable[[], object], name: str) -> Iterator[None]:
    """Call ``act`` in a thread called ``name`` after every so many seconds, until the block ends.

    A call that is under way then is waited for. The thread ends with the process wherever that ends.
    """
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(seconds):
            act()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
