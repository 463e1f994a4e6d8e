"""Views over the frames of their query: always what a direct aggregation with the view's windows gives."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.settings import Query
from tests.examples import examples
from tests.unit.twostep.pipe import INPUTS, ROUTED, SLIDE, Pipe, Row

AGGREGATES = {"n": "count", "s": "sum(i)", "lo": "min(i)"}
INVERTIBLE = {"n": "count", "s": "sum(i)"}
TIMES = st.integers(-80, 120)
ROWS = st.tuples(TIMES, st.sampled_from([b"a", b"b", b"c"]), st.none() | st.integers(-9, 9), st.none())


def view_of(*, slides: int, panes: int, aggregates: dict[str, str], key: str | None = None) -> AggregatePlan:
    """Its pane is so many slides of the query, its window so many of its panes. key: the column that it
    groups by.
    """
    seen = {"aggregates": aggregates, "slide": slides * SLIDE, "window": panes * slides * SLIDE, "key": key}
    query = Query(
        window=3 * SLIDE, slide=SLIDE, aggregates={"f": "last(f)"}, types={"i": "int64"}, views={"v": seen}
    )
    return AggregatePlan.of(query.view("v"))


@dataclass
class Direct:
    """The windows of a plan from plain lists; times are of tuples."""

    plan: AggregatePlan

    def results(self, rows: list[Row]) -> dict[tuple[int, bytes], dict[str, Any]]:
        members: dict[tuple[int, bytes], list[int | None]] = defaultdict(list)
        slide, window = self.plan.slide, self.plan.window
        for time, of_query, value, _ in rows:
            if self.plan.own_key is not None and value is None:
                continue
            key = of_query if self.plan.own_key is None else str(value).encode()
            last = time - time % slide
            for start in range(last - window + slide, last + 1, slide):
                members[start, key].append(value)
        return {at: self._of(values) for at, values in members.items()}

    def _of(self, values: list[int | None]) -> dict[str, Any]:
        present = [value for value in values if value is not None]
        told = {"n": len(values), "s": sum(present) if present else None, "lo": min(present, default=None)}
        return {output.label: told[output.label] for output in self.plan.outputs}


@examples(60)
@given(
    rows=st.lists(ROWS, max_size=30),
    slides=st.integers(1, 4),
    panes=st.integers(1, 3),
    aggregates=st.sampled_from([AGGREGATES, INVERTIBLE]),
    key=st.sampled_from([None, "i"]),
    cut=st.integers(1, 7),
)
def test_a_view_gives_what_a_direct_aggregation_with_its_windows_and_its_key_gives(
    rows: list[Row], slides: int, panes: int, aggregates: dict[str, str], key: str | None, cut: int
) -> None:
    """Tuples are routed by the query's key, and a view may group by another column, which may be null."""
    plan = view_of(slides=slides, panes=panes, aggregates=aggregates, key=key)
    pipe = Pipe(plan)
    ordered = sorted(rows, key=lambda row: row[0])
    for number, begin in enumerate(range(0, len(ordered), cut)):
        block = ordered[begin : begin + cut]
        # The mark may stand within a pane of the view: none of the query's panes from there on is closed.
        mark = block[0][0] // SLIDE * SLIDE
        for routed in range(ROUTED):
            mine = [(time // SLIDE, *row) for (time, *row) in block if hash_of(row[0]) % ROUTED == routed]
            pipe.write(routed, mine, dict.fromkeys(range(INPUTS), mark))
        if number % 2:
            pipe.step()
    pipe.end()
    result = {
        at: {label: row[label] for label in (o.label for o in plan.outputs)}
        for at, row in pipe.results().items()
    }
    assert result == Direct(plan).results(rows)


def hash_of(key: Any) -> int:
    return bytes(key)[0]


@given(pane=st.integers(-(2**62), 2**62), slides=st.integers(2, 1_000))
def test_the_panes_of_any_frame_are_mapped_downwards(pane: int, slides: int) -> None:
    plan = view_of(slides=slides, panes=1, aggregates=INVERTIBLE)
    columns = {"pane": [pane], "key": [b"k"], "time": [0], "v:f": [None], "v:i": [1]}
    rows = pa.table([columns[field.name] for field in plan.frame_schema], schema=plan.frame_schema)
    assert plan.combine(rows)["pane"].to_pylist() == [pane // slides]
