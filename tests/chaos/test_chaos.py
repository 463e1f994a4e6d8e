"""What chaos is made of, and a bounded run of it. `make test-chaos` plays as many rounds as one likes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.clocks import Clocks
from tests.chaos.course import (
    EVERY_KIND,
    KINDS,
    LASTING,
    ON_EXECUTORS,
    ON_SMALL_DISKS,
    PARTS,
    WITH_A_CONTROLLER,
    WITH_A_REGISTRY,
    Course,
    draw,
    playable,
)
from tests.chaos.processes import MARK, marked, resident
from tests.chaos.proxy import HOST, Proxy
from tests.chaos.rounds import growth, play
from tests.chaos.strikes import HOW


@contextmanager
def echo() -> Iterator[int]:
    """A server that sends back what it gets. Its port."""
    with socket.create_server((HOST, 0)) as server:

        def send_back(client: socket.socket) -> None:
            with client:
                while piece := client.recv(1_000):
                    client.sendall(piece)

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=send_back, args=(client,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def asked(port: int, text: bytes) -> bytes:
    """What comes back through a connection of its own. Empty if the other side ends it."""
    with socket.create_connection((HOST, port), timeout=10) as client:
        return answer(client, text)


def answer(client: socket.socket, text: bytes = b"") -> bytes:
    """What the other side sends after this text. Empty if it ends the connection, by a reset or in order."""
    try:
        client.sendall(text)
        return client.recv(1_000)
    except ConnectionError:
        return b""


def test_a_proxy_passes_what_comes_cuts_what_stands_and_refuses_when_it_is_told_to() -> None:
    with echo() as port, Proxy() as proxy:
        proxy.target = port
        assert asked(proxy.port, b"one") == b"one"
        with socket.create_connection((HOST, proxy.port), timeout=10) as standing:
            standing.sendall(b"two")
            assert standing.recv(1_000) == b"two"
            proxy.cut()
            assert answer(standing) == b""
        assert asked(proxy.port, b"three") == b"three"
        proxy.refusing = True
        assert asked(proxy.port, b"four") == b""


def test_a_proxy_with_nothing_behind_it_ends_the_connection() -> None:
    with echo() as port:
        pass
    with Proxy() as proxy:
        proxy.target = port
        assert asked(proxy.port, b"one") == b""


def test_a_seed_draws_the_same_course_again_and_another_seed_another() -> None:
    first = draw(7, faults=20)
    assert first == draw(7, faults=20)
    assert first != draw(8, faults=20)
    assert len(first.strikes) == 20
    assert first.strikes[0].calm, "the first strike would hit a pipeline that has not come up"


def test_without_their_kinds_no_course_has_registries_clocks_executors_or_controllers() -> None:
    courses = [draw(seed, faults=10) for seed in range(50)]
    for course in courses:
        assert not any((course.registered, course.sets_clocks, course.executors, course.controlled))
        assert course.sink != "avro"


def test_two_hundred_seeds_draw_every_kind_wiring_sink_and_number_of_instances() -> None:
    courses = [draw(seed, faults=10, kinds=EVERY_KIND) for seed in range(200)]
    assert {fault.kind for course in courses for fault in course.strikes} == set(EVERY_KIND) == HOW.keys()
    assert {course.wiring for course in courses} == {"fused", "split"}
    assert {course.sink for course in courses} == {"kafka", "frames", "parquet", "delta", "avro"}
    assert {course.instances for course in courses} == {1, 2, 3}
    for needed, kinds in (
        ("registered", WITH_A_REGISTRY), ("executors", ON_EXECUTORS), ("controlled", WITH_A_CONTROLLER),
    ):  # fmt: skip
        assert {getattr(course, needed) for course in courses} == {True, False}
        without = [course for course in courses if not getattr(course, needed)]
        assert not any(strike.kind in kinds for course in without for strike in course.strikes)
    assert LASTING.keys() <= set(EVERY_KIND)


@pytest.mark.parametrize("kind", [*WITH_A_REGISTRY, *ON_EXECUTORS, *WITH_A_CONTROLLER])
def test_a_course_of_one_kind_alone_has_what_the_kind_needs(kind: str) -> None:
    course = draw(1, faults=3, kinds=[kind])
    assert [strike.kind for strike in course.strikes] == [kind] * 3
    assert [course.registered, course.executors, course.controlled] == [
        kind in kinds for kinds in (WITH_A_REGISTRY, ON_EXECUTORS, WITH_A_CONTROLLER)
    ]


def test_each_kind_hits_one_part_and_machines_play_what_they_can() -> None:
    assert sorted(kind for kinds in PARTS.values() for kind in kinds) == sorted(EVERY_KIND)
    assert playable(small_disks=True, clocks=True) == EVERY_KIND
    assert set(EVERY_KIND) - set(playable(small_disks=False, clocks=False)) == {*ON_SMALL_DISKS, "set clock"}


def test_a_clock_that_is_set_moves_the_time_of_day_of_a_running_process_and_no_other_clock(
    tmp_path: Path,
) -> None:
    clocks = Clocks(tmp_path, ("one",))
    code = "import sys, time; [print(time.time(), time.monotonic(), flush=True) for _ in sys.stdin]"
    with clocks.shown("one"):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    assert "LD_PRELOAD" not in os.environ
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        seen = []
        for wrong in (0, 900, -900):
            clocks.set("one", wrong)
            assert clocks.wrong("one") == wrong
            child.stdin.write("\n")
            child.stdin.flush()
            shown, monotonic = map(float, child.stdout.readline().split())
            seen.append((shown - time.time(), monotonic - time.monotonic()))
        child.stdin.close()
    assert [round(shown / 10) for shown, _ in seen] == [0, 90, -90]
    assert all(abs(monotonic) < 10 for _, monotonic in seen)


def test_under_a_clock_that_is_set_the_client_of_kafka_waits_as_long_as_before(tmp_path: Path) -> None:
    clocks = Clocks(tmp_path, ("one",))
    code = (
        "import sys, time; from confluent_kafka import Producer; client = Producer({})\n"
        "for _ in sys.stdin: at = time.monotonic(); client.poll(0.3); print(time.monotonic() - at, flush=1)"
    )
    with clocks.shown("one"):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        waited = []
        for wrong in (0, 900, -900):
            clocks.set("one", wrong)
            child.stdin.write("\n")
            child.stdin.flush()
            waited.append(float(child.stdout.readline()))
        child.stdin.close()
    assert min(waited) > 0.29
    assert max(waited) < 100


def test_memory_that_doubles_is_a_growth_of_two_and_few_sizes_say_nothing() -> None:
    assert growth([100] * 4 + [150] * 4 + [200] * 4) == 2.0
    assert growth([100, 200, 300] * 3) is None


def test_a_process_that_is_left_running_is_seen_by_its_mark_and_its_memory() -> None:
    words = [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        words, env=os.environ | {MARK: "mine"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert [line.split()[0] for line in marked("mine")] == [str(child.pid)]
        assert marked("another") == []
        assert resident(child.pid) > 0
        child.communicate()
    assert marked("mine") == []
    assert resident(child.pid) == 0


@pytest.mark.pipeline
@pytest.mark.more
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(
    ("seed", "faults", "kinds"),
    [
        # Together thirty, which two workers of pytest play at once.
        (101, 15, KINDS),
        (118, 15, (*KINDS, *WITH_A_REGISTRY, *WITH_A_CONTROLLER)),
        pytest.param(102, 30, playable(small_disks=False, clocks=False), marks=pytest.mark.long),
    ],
)
def test_after_all_faults_the_results_are_those_of_brute_force_and_nothing_is_left_running(
    tmp_path: Path, seed: int, faults: int, kinds: tuple[str, ...]
) -> None:
    _play(draw(seed, faults=faults, kinds=kinds), tmp_path)


@pytest.mark.pipeline
@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("seed", "faults", "kinds"),
    [
        (4803, 25, (*KINDS, *ON_SMALL_DISKS)),
        (4806, 25, (*KINDS, *ON_SMALL_DISKS)),
        (6009, 25, EVERY_KIND),
        (101, 30, playable(small_disks=False, clocks=False)),
    ],
)
def test_a_seed_that_failed_once_is_exact(
    tmp_path: Path, seed: int, faults: int, kinds: tuple[str, ...]
) -> None:
    """As the seed was drawn then, but that no disk is filled and no clock is set. What comes behind such a
    strike comes sooner.
    """
    course = draw(seed, faults=faults, kinds=kinds)
    possible = playable(small_disks=False, clocks=False)
    strikes = tuple(strike for strike in course.strikes if strike.kind in possible)
    _play(replace(course, strikes=strikes), tmp_path)


def _play(course: Course, folder: Path) -> None:
    outcome = play(course, folder)
    print(course, outcome, *outcome.history, sep="\n")
    assert outcome.violations == []
    assert outcome.rows > 0
