"""Assignments of every name and option over one mixed stream: what they were when they were written down.

A change of the code that is none of a rule keeps them. A change of a rule writes them anew, and says so:
`python -m tests.unit.partitioners.test_golden`.
"""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from evenflow.partitioners import create, restore
from tests.unit.partitioners.cases import CASES, each
from tests.unit.partitioners.streams import SPREAD, Stream

GOLDEN = Path(__file__).with_name("golden.json")
BATCH = 500
PLACES = ((0, 1), (1, 3))
"""Source and sources."""


def mixed() -> Stream:
    """Steady skew, other hot keys, no skew, one key with 90 %, a silence, disorder, and a tuple from the
    future.
    """
    rng = np.random.default_rng(42)
    law = np.arange(1, 2001) ** -1.2
    skewed = rng.choice(2000, 9000, p=law / law.sum())
    giant = np.where(rng.random(3000) < 0.9, 77, rng.integers(0, 5000, 3000))
    ranks = np.concatenate([skewed[:4000], skewed[4000:] + 10_000, rng.integers(0, 600, 3000), giant])
    times = np.arange(len(ranks)) * 2 + 1_700_000_000_000
    times[6000:] += 20_000
    times[9000:11_000] -= rng.integers(0, 900, 2000)
    times[7000] += 3_600_000
    return ranks.astype(np.uint64) * SPREAD, times


def routed(name: str, options: dict, stream: Stream, source: int, sources: int) -> np.ndarray:
    """In blocks; a third goes through a restored partitioner, and the last third over other workers."""
    keys, times = (np.ascontiguousarray(column[source::sources]) for column in stream)
    p, out = create(name, workers=12, source=source, sources=sources, **options), []
    third = len(keys) // (3 * BATCH) * BATCH
    for at in range(0, len(keys), BATCH):
        if at == third:
            p = restore(p.snapshot())
        elif at == 2 * third:
            p.rescale(17)
        out.append(p.assign_batch(keys[at : at + BATCH], times[at : at + BATCH]))
    return np.concatenate(out)


def label(name: str, options: dict) -> str:
    return f"{name} {json.dumps(options, sort_keys=True)}"


def digests(name: str, options: dict, stream: Stream) -> list[str]:
    return [sha256(routed(name, options, stream, *place).tobytes()).hexdigest()[:16] for place in PLACES]


@pytest.fixture(scope="module")
def stream() -> Stream:
    return mixed()


@pytest.fixture(scope="module")
def golden() -> dict[str, list[str]]:
    return json.loads(GOLDEN.read_text())


@each
def test_assignments_are_those_that_were_written_down(
    name: str, options: dict, stream: Stream, golden: dict[str, list[str]]
) -> None:
    assert digests(name, options, stream) == golden[label(name, options)]


def test_nothing_is_written_down_that_does_not_exist(golden: dict[str, list[str]]) -> None:
    assert golden.keys() == {label(*case) for case in CASES}


if __name__ == "__main__":
    made = mixed()
    found = {label(*case): digests(*case, made) for case in CASES}
    GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
