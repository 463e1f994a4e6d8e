"""A scrape every 15 s, as Prometheus does unless it is told otherwise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import urlopen

from monitoring.instruments.sheet import Instruments
from monitoring.serving import METRICS, served

_APART = 15.0
_HOST = "127.0.0.1"


class Scraper:
    """Asks for the metrics at a port whenever 15 s of work have gone by. Each scrape has a thread of its
    own.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._worked = 0.0

    def worked(self, seconds: float) -> None:
        """Note that `seconds` more seconds of work have gone by."""
        self._worked += seconds
        if self._worked >= _APART:
            self._worked = 0.0
            threading.Thread(target=self._ask, name="bench-scrape", daemon=True).start()

    def _ask(self) -> None:
        with urlopen(f"http://{_HOST}:{self._port}{METRICS}") as answer:
            answer.read()


@contextmanager
def scraper(instruments: Instruments) -> Iterator[Scraper]:
    """Serves these metrics, and gives a scraper of them, for as long as the block of `with` runs."""
    with served(instruments, _HOST, 0, setting="this benchmark") as port:
        yield Scraper(port)
