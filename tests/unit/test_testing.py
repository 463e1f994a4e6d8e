"""`evenflow.testing` passes what keeps every law, and names the law, an example and what was expected
otherwise.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from evenflow.contracts import Law
from evenflow.elasticity import Decision, Observation, Policy
from evenflow.errors import ConfigError
from evenflow.partitioners import PlainPartitioner
from evenflow.partitioners.base import Block
from evenflow.partitioners.checking import DESCRIBED, OF_ALL, OF_ONLINE, PROCESSES, PartitionerCase
from evenflow.partitioners.simple.hashing import Hashing
from evenflow.plugins import name_of
from evenflow.settings import Settings
from evenflow.testing import BrokenLawError, check_partitioner, check_policy, check_sink
from spark_consumers.sinks import SINKS, RowsSink

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


class Whole(PlainPartitioner):
    """By the key alone."""

    def route_one(self, key: int, time_ms: int) -> int:
        return key % self.workers


class Outside(Whole):
    """One worker too far."""

    def route_one(self, key: int, time_ms: int) -> int:
        return key % (self.workers + 1)


class Unseeded(Whole):
    """By chance."""

    def route_one(self, key: int, time_ms: int) -> int:
        return random.randrange(self.workers)


class Global(Whole):
    """In turn, and the turn is no state of its own."""

    turn: ClassVar[list[int]] = [0]

    def route_one(self, key: int, time_ms: int) -> int:
        self.turn[0] += 1
        return self.turn[0] % self.workers


class Forgetful(Whole):
    """In turn, and a snapshot lacks the turn."""

    def start(self) -> None:
        self.turn = 0

    def route_one(self, key: int, time_ms: int) -> int:
        self.turn = (self.turn + 1) % self.workers
        return self.turn

    def get_state(self) -> object:
        return {}

    def set_state(self, state: object) -> None:
        pass


class Splitting(Forgetful):
    """Says that a key has one worker, and sends it in turn."""

    key_policy = "hashing"

    def get_state(self) -> object:
        return self.turn

    def set_state(self, state: object) -> None:
        self.turn = state


class ByBlock(Hashing):
    """All tuples of a block go to the worker of its first key."""

    def _assign(self, block: Block) -> None:
        super()._assign(block)
        block.out[:] = block.out[0]


class ByOwnHash(Whole):
    """By Python's hash of a text, which each process salts anew."""

    def route_one(self, key: int, time_ms: int) -> int:
        return hash(str(key)) % self.workers


class Mute(Whole):
    __doc__ = None


@pytest.mark.parametrize(
    ("partitioner", "law", "words"),
    [
        (Outside, "every tuple gets one worker in range", "gave"),
        (Unseeded, "the same seed, options and input give the same workers", "goes to worker"),
        (Global, "the same seed, options and input give the same workers", "differ"),
        (Forgetful, "a restored snapshot continues identically", "with a snapshot after tuple 2999"),
        (Splitting, "a key has one worker, if the key policy says so", "for one"),
        (ByBlock, "the workers do not depend on how the stream is cut into blocks", "cut at"),
    ],
)
def test_a_partitioner_that_breaks_a_law_is_told_which(partitioner: type, law: str, words: str) -> None:
    with pytest.raises(BrokenLawError, match=words) as caught:
        check_partitioner(partitioner)
    assert caught.value.law == law
    assert caught.value.message.startswith(f"{__name__}:{partitioner.__name__} breaks a law: {law}")
    assert isinstance(caught.value, AssertionError), "a test counts it as a failure and not as an error"


@pytest.mark.parametrize(
    ("partitioner", "law", "words"),
    [(ByOwnHash, PROCESSES, "PYTHONHASHSEED=1"), (Mute, DESCRIBED, "a sentence")],
)
def test_the_last_laws_are_told_too(partitioner: type, law: Law, words: str) -> None:
    name = name_of(partitioner)
    with pytest.raises(BrokenLawError, match=words):
        law.hold(PartitionerCase(name), who=name)


def test_a_partitioner_that_breaks_no_law_passes() -> None:
    check_partitioner(Whole)


def test_what_is_no_partitioner_is_refused_before_any_law() -> None:
    with pytest.raises(ConfigError, match="unknown option 'd'"):
        check_partitioner(Whole, d=3)


def test_an_error_where_a_law_is_tried_breaks_the_law_and_has_its_line() -> None:
    def check(case: PartitionerCase) -> None:
        raise KeyError(case.name)

    with pytest.raises(BrokenLawError, match=r"KeyError: 'pkg' \(.*test_testing.py, line \d+\)"):
        Law("nothing", check).hold(PartitionerCase("pkg"), who="pkg")


def test_every_law_has_words_of_its_own() -> None:
    words = [law.words for law in (*OF_ALL, *OF_ONLINE)]
    assert len(set(words)) == len(words)


class Steady(Policy):
    """Keeps p and r."""

    def _decide(self, seen: Observation) -> Decision:
        return Decision(p=seen.p, r=seen.r, reason="as it is", cause="stable")


class Wordless(Steady):
    """Gives no reason."""

    def _decide(self, seen: Observation) -> Decision:
        return Decision(p=seen.p, r=seen.r, reason="", cause="stable")


class Moody(Steady):
    """By chance."""

    def _decide(self, seen: Observation) -> Decision:
        return Decision(p=random.randint(1, 12), r=1, reason="a mood", cause="load")


class Absent(Steady):
    """Counts observations, and a snapshot lacks the count."""

    def __init__(self, **made: object) -> None:
        super().__init__(**made)  # type: ignore[arg-type]
        self.count = 0

    def _decide(self, seen: Observation) -> Decision:
        self.count += 1
        return Decision(p=1 + self.count % 12, r=1, reason="the next", cause="load")


class OnePlace(RowsSink):
    """Writes everything to one place."""

    name, repeats = "one-place", True

    def write(self, rows: object, batch: int, settings: Settings) -> None:
        pass

    def place(self, settings: Settings) -> str:
        return "here"


class Rash(Steady):
    """Decides without data."""

    def decide(self, seen: Observation) -> Decision:
        return Decision(p=1, r=1, reason="always one", cause="load")


@pytest.mark.parametrize(
    ("policy", "law"),
    [
        (Wordless, "p and r lie within the bounds, whatever is observed"),
        (Moody, "the same seed and observations give the same decisions"),
        (Absent, "a restored policy continues exactly"),
        (Rash, "nothing is decided on stale or missing data, or while a plan is being realised"),
    ],
)
def test_a_policy_that_breaks_a_law_is_told_which(policy: type[Policy], law: str) -> None:
    with pytest.raises(BrokenLawError) as caught:
        check_policy(policy)
    assert caught.value.law == law


def test_a_policy_that_breaks_no_law_passes() -> None:
    check_policy("threshold")


def test_a_sink_is_held_to_its_laws_from_the_same_place() -> None:
    check_sink(SINKS["parquet"])
    with pytest.raises(AssertionError, match="place of a view"):
        check_sink(OnePlace())


@pytest.mark.more
def test_the_package_of_the_example_passes_its_own_tests() -> None:
    root = EXAMPLE.parents[1]
    words = ["-m", "pytest", "-c", "pyproject.toml", "-p", "no:cacheprovider", "-q", "tests"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(EXAMPLE), str(root)])}
    done = subprocess.run(
        [sys.executable, *words], cwd=EXAMPLE, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-1_000:]
