"""A call into librdkafka that never returns ends the process; one that is slow does not."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from partitioner_service.kafka.watchdog import STATUS, Watchdog


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_only_a_call_that_outlasts_its_timeout_and_the_grace_ends_the_process() -> None:
    clock, ended = Clock(), list[str]()
    dog = Watchdog(clock=clock, end=ended.append)
    with dog.bounded("commit", 30):
        clock.now += 44
        dog.check()
        assert ended == []
        clock.now += 2
        dog.check()
    assert ended == ["commit"]
    clock.now += 1000
    dog.check()
    assert ended == ["commit"], "nothing is in progress"


def test_a_call_within_a_call_has_a_deadline_of_its_own_and_the_outer_one_goes_on_after_it() -> None:
    clock, ended = Clock(), list[str]()
    dog = Watchdog(clock=clock, end=ended.append)
    with dog.bounded("outer", 0):
        with dog.bounded("inner", 100):
            clock.now += 50
            dog.check()
            assert ended == []
        dog.check()
    assert ended == ["outer"]


def test_a_process_that_hangs_ends_with_a_status_and_says_where() -> None:
    script = """
    import threading
    from partitioner_service.kafka import watchdog
    watchdog._GRACE, watchdog._EVERY = 0.0, 0.01
    dog = watchdog.Watchdog()
    dog.start()
    with dog.bounded("send_offsets_to_transaction", 0.05):
        threading.Lock().acquire()
        hanging = threading.Lock()
        hanging.acquire()
        hanging.acquire()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == STATUS
    assert "send_offsets_to_transaction has not returned" in done.stderr
    assert "most recent call first" in done.stderr
