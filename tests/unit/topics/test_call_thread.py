"""Calls that may hang, in a thread of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from evenflow.errors import ServiceError
from topics import call_thread
from topics.call_thread import BoundedCalls


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_thread, "GRACE", 0.0)
    monkeypatch.setattr(call_thread, "_LOOK_SECONDS", 0.01)


class Lasting:
    """A call that ends when it may."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.began.set()
        self.may_end.wait(20.0)
        return "long"


def test_a_call_gives_its_result_or_its_error() -> None:
    calls = BoundedCalls("calls")
    assert calls.call(lambda: 7, timeout=20.0, doing="counting") == 7
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 / 0, timeout=20.0, doing="dividing")
    calls.close()


def test_the_time_of_a_call_does_not_count_the_call_before_it() -> None:
    calls, lasting = BoundedCalls("calls"), Lasting()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(calls.call, lasting, timeout=20.0, doing="waiting")
        lasting.began.wait(20.0)
        # Its own time is up at once, if that of the call before it counts.
        second = threads.submit(calls.call, lambda: "short", timeout=0.2, doing="hurrying")
        with pytest.raises(TimeoutError):
            second.result(0.5)
        lasting.may_end.set()
        assert (first.result(20.0), second.result(20.0)) == ("long", "short")
    calls.close()


def test_a_call_behind_one_that_hangs_says_which_one_hangs() -> None:
    calls, lasting = BoundedCalls("calls"), Lasting()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(calls.call, lasting, timeout=0.5, doing="committing")
        lasting.began.wait(20.0)
        second = threads.submit(calls.call, lambda: None, timeout=0.5, doing="checking")
        for future in (first, second):
            with pytest.raises(ServiceError, match="committing has not returned"):
                future.result(20.0)
        with pytest.raises(ServiceError, match="committing has not returned"):
            calls.call(lambda: None, timeout=0.5, doing="checking")
        lasting.may_end.set()
    calls.close()
