"""A window of one bucket may hold more than Arrow's text columns do (2 GiB): in state, in merging and on
its way out.
"""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.twostep import json_rows, reduce_windows
from evenflow.twostep.reducing import rows_out
from evenflow.windows import END_MARK
from tests.unit.twostep.pipe import INPUTS, INVERTIBLE, ROUTED, Pipe, Row, direct, feed, plan_of


def test_a_window_leaves_its_bucket_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_out, "RESULT_BYTES", 300)
    pipe = Pipe(plan_of(INVERTIBLE, 2), buckets=1)
    rows = feed(pipe, [(0, [(0, b"key-%d" % n, n, None) for n in range(100)], 0)])
    for routed in range(ROUTED):
        pipe.write(routed, [], dict.fromkeys(range(INPUTS), END_MARK))
    tables = list(reduce_windows(pipe.plan, pipe.layout, pipe.states[0], pipe.combine()[0]))
    assert len(tables) > 20
    assert max(table.nbytes for table in tables) < 1_000
    pipe.found = [row for table in tables for row in table.to_pylist()]
    assert pipe.results() == direct(pipe.plan, rows)


@pytest.mark.long
def test_a_window_with_more_than_two_gibibytes_of_keys_is_emitted() -> None:
    pipe = Pipe(plan_of({"n": "count"}, 1), buckets=1, tasks=((0,), (1,), (2,)))
    size, keys = 4_000_000, 560
    for start in range(0, keys, 40):
        rows: list[Row] = [(0, b"%08d" % n + bytes(size), 1, None) for n in range(start, start + 40)]
        feed(pipe, [(0, rows, 0)])
        assert list(reduce_windows(pipe.plan, pipe.layout, pipe.states[0], pipe.combine()[0])) == []
    for routed in range(ROUTED):
        pipe.write(routed, [], dict.fromkeys(range(INPUTS), END_MARK))
    result, seen = 0, []
    for table in reduce_windows(pipe.plan, pipe.layout, pipe.states[0], pipe.combine()[0]):
        assert table.nbytes < 5 * rows_out.RESULT_BYTES
        assert len(json_rows(table)) == table.num_rows
        result += sum(map(len, table["key"].to_pylist()))
        seen += [int(key[:8]) for key in table["key"].to_pylist()]
    assert result == keys * (size + 8) > 2**31
    assert np.array_equal(np.sort(seen), np.arange(keys))
