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


def test_a_call_gives_its_result_or_its_error() -> None:
    calls = BoundedCalls("calls")
    assert calls.call(lambda: 7, timeout=20.0, doing="counting") == 7
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 / 0, timeout=20.0, doing="dividing")
    calls.close()


def test_the_time_of_a_call_does_not_count_the_call_before_it() -> None:
    calls, began, may_end = BoundedCalls("calls"), threading.Event(), threading.Event()

    def long() -> str:
        began.set()
        may_end.wait(20.0)
        return "long"

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(calls.call, long, timeout=20.0, doing="waiting")
        began.wait(20.0)
        # Its own time is up at once, if that of the call before it counts.
        second = threads.submit(calls.call, lambda: "short", timeout=0.2, doing="hurrying")
        with pytest.raises(TimeoutError):
            second.result(0.5)
        may_end.set()
        assert (first.result(20.0), second.result(20.0)) == ("long", "short")
    calls.close()


def test_a_call_behind_one_that_hangs_says_which_one_hangs() -> None:
    calls, began, may_end = BoundedCalls("calls"), threading.Event(), threading.Event()

    def hangs() -> None:
        began.set()
        may_end.wait(20.0)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(calls.call, hangs, timeout=0.5, doing="committing")
        began.wait(20.0)
        second = threads.submit(calls.call, lambda: None, timeout=0.5, doing="checking")
        for future in (first, second):
            with pytest.raises(ServiceError, match="committing has not returned"):
                future.result(20.0)
        with pytest.raises(ServiceError, match="committing has not returned"):
            calls.call(lambda: None, timeout=0.5, doing="checking")
        may_end.set()
    calls.close()
