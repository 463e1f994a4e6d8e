"""A sample for advice on a topic: stray times are set aside, and the figures are those of the other
tuples.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.advice import Advice, Sample, Strays, Wishes, advise
from evenflow.numeric.arrays import Bools, Int64s
from evenflow.settings import Query
from evenflow.simulation import generated
from workbench.assist.samples import strays_of_tuples

START, NOW = 1_800_000_000_000, 1_800_000_100_000
FUTURE = 3_976_000_000_000
QUERY = Query(name="q", key="who", time="at", time_unit="ms", window=4_000, slide=1_000)


def strays(times: Int64s, partitions: int = 2) -> tuple[tuple[Strays, ...], Bools]:
    rows = np.arange(len(times))
    places = np.stack([rows % partitions, rows // partitions], axis=1)
    return strays_of_tuples(QUERY, times, places, now=NOW)


def test_five_strays_of_20000_change_no_figure_of_the_advice() -> None:
    stream = generated("zipf", tuples=20_000, keys=500, zipf=1.0)
    keys = pa.array([f"k{code}" for code in stream.codes.tolist()])
    times = START + np.arange(20_000) * 2
    dirty = times.copy()
    dirty[[40, 900, 15_000]] //= 1000
    dirty[[41, 19_999]] = FUTURE
    result, regular = strays(dirty)
    assert sorted(np.flatnonzero(~regular).tolist()) == [40, 41, 900, 15_000, 19_999]
    assert [one.tuples for one in result] == [3, 2]
    assert result[0].cause == "are in s, not ms"
    assert result[0].example == "offset 20 of partition 0, read as 1970-01-21 20:00:00.000 UTC".replace(
        ".000", ""
    )
    assert result[1].cause == "lie further ahead of the clock than query.max_ahead_of_clock allows"

    def figures(without: tuple[Strays, ...]) -> Advice:
        kept = Sample("topic t", keys.filter(pa.array(regular)), times[regular], timed=True, strays=without)
        return advise(kept, Wishes(workers=4, window_ms=4_000, slide_ms=1_000))

    advice, clean = figures(result), figures(())
    assert (
        "3 of 20,000 tuples (under 0.1 %) are in s, not ms, e.g. offset 20 of partition 0"
        in advice.warnings[0]
    )
    assert advice.rate == clean.rate == 500
    assert (advice.seconds, advice.window_tuples, advice.keys) == (
        clean.seconds,
        clean.window_tuples,
        clean.keys,
    )
    assert advice.seconds == 39.996
    assert [one.cost for one in advice.candidates] == [one.cost for one in clean.candidates]


def test_a_topic_most_of_whose_times_do_not_fit_keeps_them_all() -> None:
    times = START + np.arange(100)
    times[::2] = FUTURE
    result, regular = strays(times)
    assert result == ()
    assert regular.all()
