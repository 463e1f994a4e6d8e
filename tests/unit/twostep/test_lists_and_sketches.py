"""Partials that are lists, structs and sketches take the same way through frames, blobs, state and tree as
numbers do.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from evenflow.aggregates import AggregatePlan, every_form
from evenflow.settings import Query
from evenflow.twostep import json_rows
from tests.unit.twostep.pipe import INPUTS, ROUTED, SLIDE, Pipe, Row

FORMS = every_form("i") | {"few": "top_k(i, 2, 4)", "some": "collect(i, 3)"}
PANES = 6


def _plan() -> AggregatePlan:
    return AggregatePlan.of(Query(window=PANES * SLIDE, slide=SLIDE, aggregates=FORMS, types={"i": "int64"}))


def _rows() -> list[Row]:
    return [
        (pane, b"k%d" % (n % 3), n * n % 17 if n % 5 else None, None) for pane in range(20) for n in range(12)
    ]


def _run(max_bytes: int, batches: int) -> tuple[Pipe, list[dict[str, Any]]]:
    pipe = Pipe(_plan(), max_bytes=max_bytes)
    rows = _rows()
    size = len(rows) // batches
    for batch in range(batches):
        mine = rows[batch * size : (batch + 1) * size]
        for routed in range(ROUTED):
            mark = mine[0][0] * SLIDE
            pipe.write(routed, mine[routed::ROUTED], dict.fromkeys(range(INPUTS), mark))
        pipe.step()
    pipe.end()
    return pipe, sorted(pipe.found, key=lambda row: (row["window_start"], row["key"]))


@pytest.mark.parametrize(("max_bytes", "batches"), [(1_000_000, 4), (2_000, 10)])
def test_however_tuples_are_cut_every_window_is_that_of_its_tuples(max_bytes: int, batches: int) -> None:
    pipe, result = _run(max_bytes, batches)
    plan = pipe.plan
    assert len(result) == 3 * (20 + PANES - 1)
    for row in result[::7]:
        last = row["window_end"] // SLIDE
        mine = [r for r in _rows() if last - PANES <= r[0] < last and r[1] == row["key"]]
        columns = {"pane": [0] * len(mine), "key": [r[1] for r in mine], "time": [r[0] * SLIDE for r in mine]}
        values = [r[2] for r in mine]
        frame = pa.table({f.name: pa.array(columns.get(f.name, values), f.type) for f in plan.frame_schema})
        (direct,) = plan.finish(plan.combine(frame)).to_pylist()
        for name, form in FORMS.items():
            if "variance" in form or "stddev" in form:
                assert row[name] == pytest.approx(direct[name], rel=1e-9)
            elif name != "few":
                assert row[name] == direct[name], form


def test_a_repeated_run_gives_the_same_bytes_of_state_and_of_results() -> None:
    (one, first), (other, second) = _run(2_000, 10), _run(2_000, 10)
    assert one.history == other.history
    assert one.states == other.states
    written = [json_rows(pa.Table.from_pylist(result, one.plan.result_schema)) for result in (first, second)]
    assert written[0] == written[1]
