"""Signals as a wish to stop."""

from __future__ import annotations

import os
import signal
import threading

from evenflow.host.stopping import stopped_by_signals


def test_sigterm_and_sigint_set_the_event_and_the_handlers_before_are_put_back() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        stop = threading.Event()
        with stopped_by_signals(stop):
            os.kill(os.getpid(), number)
            assert stop.wait(5)
    assert {number: signal.getsignal(number) for number in before} == before


def test_a_thread_that_is_not_the_main_one_catches_nothing_and_does_not_fail() -> None:
    handler, reached = signal.getsignal(signal.SIGTERM), []

    def body() -> None:
        with stopped_by_signals(threading.Event()):
            reached.append(signal.getsignal(signal.SIGTERM) is handler)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert reached == [True]
