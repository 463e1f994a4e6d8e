"""Verify of `emit = "changes"` and `"top(K, COLUMN)"`: rows that plain Python picks are right, any other
are seen.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from evenflow.keys import bucket_of, hash_keys
from evenflow.settings import Settings
from tests.unit.workbench.verify.pipeline_model import END, Topics, end, record, run

EXACT = {"tuples": "count", "s": "sum(n)", "hi": "max(n)"}
ROUNDED = {"tuples": "count", "m": "mean(v)", "f": "sum(v)", "kinds": "count_distinct(n)"}


def made(emit: str, aggregates: dict[str, str], **query: Any) -> Topics:
    """A stream of 300 tuples, and all rows of its windows turned into those that must come out."""
    chance = random.Random(3)
    records = []
    for number in range(300):
        n = chance.choice([None, chance.randint(-3, 3)])
        v = chance.choice([None, 0.0, 1.5, chance.uniform(-5, 5)])
        time = number + 200 * (number > 150)
        records.append(record(chance.choice("aaabcd"), time, n=n, v=v))
    base = {"window": 40, "slide": 10, "types": {"n": "int64"} if "(n)" in str(aggregates) else {}}
    settings = Settings(
        query={**base, "aggregates": aggregates, "emit": emit, **query}, input={"partitions": 1}
    )
    topics = run(settings, [[*records, end(300)]])
    assert topics.committed[0].mark == END
    mode = settings.query.emission.mode
    topics.rows = {"changes": changed, "top": first}[mode](topics.rows, settings)
    return topics


def changed(rows: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    slide, names = settings.query.slide_ms, list(settings.query.aggregates)
    whole = {(row["window_end"], row["key"]): row for row in rows}
    of_all: Counter[tuple[int, int]] = Counter()
    for (at, key), row in whole.items():
        of_all[at, bucket(key, settings)] += counted(row)
    result = []
    for (at, key), row in whole.items():
        before = whole.get((at - slide, key))
        if before is None or any(before[name] != row[name] for name in names):
            result.append(row | {"revision": at // slide, "gone": False})
        if (at + slide, key) not in whole:
            bounds = {"window_start": row["window_start"] + slide, "window_end": at + slide, "key": key}
            none = {"_tuples": 0} if "_tuples" in row else {}
            result.append(bounds | {"revision": at // slide + 1, "gone": True} | dict.fromkeys(names) | none)
    told = [
        row | {"_tuples_of_all": of_all[row["window_end"], bucket(row["key"], settings)]} for row in result
    ]
    return sorted(told, key=lambda row: row["window_end"])


def counted(row: dict[str, Any]) -> int:
    """How many tuples a row is made of."""
    return int(row["_tuples"] if "_tuples" in row else row["tuples"])


def bucket(key: str, settings: Settings) -> int:
    return int(bucket_of(hash_keys(pa.array([key.encode()])), settings.bucket_count)[0])


def first(rows: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    emission = settings.query.emission
    sign = 1 if emission.ascending else -1
    result: list[dict[str, Any]] = []
    for at in sorted({row["window_end"] for row in rows}):
        own = sorted((row for row in rows if row["window_end"] == at), key=lambda row: row["key"])
        own.sort(key=lambda row: (row[emission.column] is None, sign * (row[emission.column] or 0)))
        of_all = {"_tuples_of_all": sum(map(counted, own))}
        result += [row | {"rank": rank} | of_all for rank, row in enumerate(own[: emission.rows], 1)]
    return result


MODES = [
    ("changes", EXACT),
    ("changes", ROUNDED),
    ("top(2, s)", EXACT),
    ("top(3, hi, ascending)", EXACT),
    ("top(2, m)", ROUNDED),
    ("top(2, f, ascending)", ROUNDED),
]


@pytest.mark.family
@pytest.mark.parametrize(("emit", "aggregates"), MODES)
@pytest.mark.parametrize("typed", [False, True])
def test_the_right_rows_are_right(emit: str, aggregates: dict[str, str], typed: bool) -> None:
    topics = made(emit, aggregates)
    report = topics.check(typed=typed)
    assert report.first == ()
    assert len(topics.rows) <= report.rows + (0 if aggregates is EXACT else 5)
    assert len(topics.rows) > 30
    topics.rows += [dict(row) for row in topics.rows[-7:]]
    assert topics.check(typed=typed).first == (), "a micro-batch that was repeated"


def test_what_came_out_before_emit_from_is_not_expected() -> None:
    topics = made("changes", EXACT, emit_from=55)
    starts = {row["window_start"] for row in topics.rows}
    assert min(starts) == 60
    assert topics.check().first == ()


@pytest.mark.parametrize("place", [3, 40])
def test_a_change_that_did_not_come_out_is_missed(place: int) -> None:
    topics = made("changes", EXACT)
    del topics.rows[place]
    assert topics.check().kinds == {"missing": 1}


def test_a_retraction_that_did_not_come_out_is_missed() -> None:
    topics = made("changes", EXACT)
    place = next(at for at, row in enumerate(topics.rows) if row["gone"])
    del topics.rows[place]
    assert topics.check().kinds == {"missing": 1}


def test_a_row_that_is_as_it_was_is_seen() -> None:
    topics = made("changes", {"few": "min(n)"})
    row = next(
        row
        for row in topics.rows
        if not row["gone"]
        and not any(o["key"] == row["key"] and o["window_end"] == row["window_end"] + 10 for o in topics.rows)
    )
    moved = {name: row[name] + 10 for name in ("window_start", "window_end")}
    topics.rows.append(row | moved | {"revision": row["revision"] + 1})
    report = topics.check()
    assert report.kinds == {"unexpected": 1}
    assert "as it was in the window one slide before" in report.first[0].detail


@pytest.mark.parametrize("wrong", [{"revision": -1}, {"gone": True}])
def test_a_wrong_revision_or_retraction_is_seen(wrong: dict[str, Any]) -> None:
    topics = made("changes", EXACT)
    place = next(at for at, row in enumerate(topics.rows) if at > 9 and not row["gone"])
    topics.rows[place] |= wrong
    assert topics.check().kinds == {"value": 1}


@pytest.mark.parametrize("emit", ["changes", "top(2, few)"])
@pytest.mark.parametrize("column", ["_tuples", "_tuples_of_all"])
def test_a_wrong_number_of_tuples_is_seen(emit: str, column: str) -> None:
    topics = made(emit, {"few": "min(n)"})
    assert topics.check().exact
    topics.rows[20][column] += 1
    report = topics.check()
    assert report.kinds == {"value": 1}
    assert report.first[0].column == column


@pytest.mark.parametrize("aggregates", [EXACT, ROUNDED])
def test_ranks_that_are_exchanged_are_seen(aggregates: dict[str, str]) -> None:
    topics = made("top(2, s)" if aggregates is EXACT else "top(2, f)", aggregates)
    topics.rows[2]["rank"], topics.rows[3]["rank"] = topics.rows[3]["rank"], topics.rows[2]["rank"]
    assert not topics.check().exact


@pytest.mark.parametrize("aggregates", [EXACT, ROUNDED])
def test_a_row_that_is_not_among_the_first_is_seen(aggregates: dict[str, str]) -> None:
    three = made("top(3, s)" if aggregates is EXACT else "top(3, f)", aggregates)
    two = made("top(2, s)" if aggregates is EXACT else "top(2, f)", aggregates)
    two.rows.append(three.rows[2])
    assert two.check().kinds["unexpected"] == 1
