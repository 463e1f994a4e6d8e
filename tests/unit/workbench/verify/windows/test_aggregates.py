from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenflow.aggregates import AGGREGATES, AggregatePlan, every_form
from evenflow.settings import Settings
from tests.unit.workbench.verify.pipeline_model import Topics, end, record, run
from workbench.verify.windows import recomputation as windows
from workbench.verify.windows.oracles import FUNCTIONS, oracles
from workbench.verify.windows.result_column import Oracle

_FORMS = every_form("v", "n") | {
    "top_v": "top_k(n, 2, 3)",
    "median": "quantile(v, 0.5)",
    "some": "collect(v, 3)",
    "lots": "count_distinct(v)",
}


def _settings(**query: Any) -> Settings:
    base = {"window": 40, "slide": 10, "aggregates": _FORMS, "types": {"n": "int64"}}
    return Settings(query={**base, **query}, input={"partitions": 1})


def _stream(tuples: int = 300) -> list[Any]:
    chance = random.Random(14)
    records = []
    for number in range(tuples):
        v = chance.choice([None, 0.0, chance.gauss(1e6, 3), chance.uniform(-5, 5), 1.5])
        n = chance.choice([None, chance.randint(-3, 3), int(chance.paretovariate(0.7))])
        records.append(record(chance.choice("aab"), number // 2 + chance.randint(-3, 0), v=v, n=n))
    return [*records, end(tuples)]


@pytest.fixture(scope="module")
def made() -> Topics:
    return run(_settings(out_of_orderness=5), [_stream()])


@pytest.fixture
def topics(made: Topics) -> Topics:
    return Topics(made.settings, made.inputs, made.rejected, [dict(row) for row in made.rows], made.committed)


def test_every_aggregate_has_an_oracle() -> None:
    assert set(AGGREGATES) == FUNCTIONS - {"="}  # that of expressions over results is no aggregate


@pytest.mark.parametrize("typed", [False, True])
def test_what_the_engine_computes_is_what_the_oracle_does(topics: Topics, typed: bool) -> None:
    report = topics.check(typed=typed)
    assert report.first == ()
    assert report.rows == len(topics.rows) > 30


def test_windows_that_follow_each_other_are_compared_as_sliding_ones_are() -> None:
    report = run(_settings(window=20, slide=20), [_stream(100)]).check()
    assert report.first == ()


def _changed(value: Any, name: str) -> Any:
    """Another value, beyond every bound."""
    if isinstance(value, list):
        return value[:-1] or None
    return None if value is None else 2 * value + (1000 if isinstance(value, int) else 1)


@pytest.mark.family
@pytest.mark.parametrize("name", _FORMS)
def test_a_value_beyond_its_bound_is_found(topics: Topics, name: str) -> None:
    row = next(row for row in topics.rows if row[name] not in (None, []))
    row[name] = _changed(row[name], name)
    report = topics.check()
    assert report.kinds == {"value": 1}
    assert report.first[0].column == name
    assert report.text()
    assert report.json()


@pytest.mark.parametrize(
    "change",
    [
        lambda top: [{**top[0], "count": top[0]["count"] + 500, "error": 0}, *top[1:]],
        lambda top: [{**top[0], "count": 10_000, "error": 10_000}, *top[1:]],
        lambda top: [top[0], top[0]],
        lambda top: [{**top[0], "value": 424_242}, *top[1:]],
        lambda top: [{**one, "error": 400} for one in top],
    ],
)
def test_counters_that_break_a_promise_are_found(topics: Topics, change: Any) -> None:
    row = next(row for row in topics.rows if len(row["top_v"] or ()) == 2)
    row["top_v"] = change(row["top_v"])
    assert topics.check().kinds == {"value": 1}


def test_a_quantile_and_a_count_may_be_off_by_their_bound_only(topics: Topics) -> None:
    row = max(topics.rows, key=lambda row: abs(row["median"] or 0))
    row["median"] *= 1 + 0.0001
    row["lots"] += 2
    assert topics.check().exact
    row["median"] *= 1.01
    row["lots"] += 500
    assert topics.check().kinds == {"value": 2}


@pytest.mark.parametrize("wrong", ["[1", 7, {"value": 1}])
def test_a_value_of_another_shape_is_malformed(topics: Topics, wrong: Any) -> None:
    topics.rows[0]["top_v"] = wrong
    assert topics.check().kinds["malformed"] == 1


def test_a_list_of_other_things_is_found(topics: Topics) -> None:
    row = next(row for row in topics.rows if row["top_v"])
    row["top_v"] = [{"value": "x", "count": 1}]
    assert topics.check().kinds == {"value": 1}


def test_text_dates_decimals_and_booleans_are_recomputed() -> None:
    types = {"s": "string", "d": "decimal(2)", "b": "bool", "t": "date"}
    forms = {
        f"{column}{number}": form.replace("(column", f"({column}")
        for column, kind in types.items()
        for number, form in enumerate(
            form
            for aggregate in AGGREGATES.values()
            for form in aggregate.forms
            if "(" in form
            and (kind in aggregate.over or (kind.startswith("decimal") and "decimal(S)" in aggregate.over))
        )
    }
    settings = _settings(aggregates=forms, types=types)
    plan = AggregatePlan.of(settings.query)
    with duckdb.connect() as db:
        db.execute(
            "CREATE TABLE tuples AS SELECT encode('k') AS key, i AS time, NULL::VARCHAR AS reason, true AS"
            " chosen, i % 3 = 0 AS v0, (i / 100)::DECIMAL(18, 2) AS v1, CASE WHEN i % 4 > 0 THEN 'w' || (i %"
            " 7) END AS v2, DATE '2020-01-01' + (i % 5)::INTEGER AS v3 FROM range(100) r(i)"
        )
        windows.recompute(db, settings, mark=100)
        due = (
            db.sql("SELECT * EXCLUDE (id, unfit) FROM expected ORDER BY window_end")
            .to_arrow_table()
            .to_pylist()
        )
        tuples = db.sql(
            "SELECT time // 10 AS pane, * EXCLUDE (reason, chosen) FROM tuples ORDER BY time DESC"
        ).to_arrow_table()
    assert len(due) == 10
    for row in due:
        inside = tuples.filter(
            (pc.field("time") < row["window_end"]) & (pc.field("time") >= row["window_end"] - 40)
        )
        columns = [inside[name] for name in ("pane", "key", "time", "v0", "v1", "v2", "v3")]
        frame = pa.table(
            [column.cast(f.type) for column, f in zip(columns, plan.frame_schema, strict=True)],
            plan.frame_schema,
        )
        (result,) = plan.finish(plan.merge([plan.combine(frame).drop_columns(["pane"])])).to_pylist()
        for i, (name, oracle) in enumerate(zip(forms, oracles(settings.query), strict=True)):
            expected, bound = row[f"a{i}"], row[f"t{i}"]
            if oracle.wrong is not None:
                assert not is_wrong(oracle, expected, result[name]), name
                assert is_wrong(oracle, expected, result[name][1:]), name
            elif bound:
                assert abs(float(result[name]) - float(expected)) <= bound, name
            else:
                assert result[name] == expected, name


def is_wrong(oracle: Oracle, expected: Any, found: Any) -> bool:
    pair = pa.table({"e": [expected], "g": pa.array([found], oracle.kind)})
    with duckdb.connect() as db:
        db.register("pair", pair)
        return bool(db.execute(f"SELECT {oracle.wrong} FROM pair").fetchall()[0][0])


_LITTLE_ROOM = {"max_state_bytes": 400, "max_result_bytes": 900}
_OF_TEXTS = {
    "least": "min(s)",
    "most": "max(s)",
    "first": "first(s)",
    "last": "last(s)",
    "some": "collect(s, 4)",
    "kinds": "count_distinct(s, exact)",
    "top": "top_k(s, 2)",
    "about": "top_k(s, 2, 3)",
    "alike": "clusters(s)",
    "middle": "quantile(n, 0.5)",
    "exactly": "quantile(n, 0.5, exact)",
}


def _long_texts(tuples: int = 120) -> list[Any]:
    chance = random.Random(15)
    texts = [None, "", "a", "a" * 113, "a" * 117 + "b", "\u00e9" * 60, "z" * 300, "b" * 40, "b" * 41]
    records = [
        record(
            chance.choice("aab"),
            number // 2,
            s=chance.choice(texts[: 3 + number // 15]),
            n=chance.randint(-9, 9),
        )
        for number in range(tuples)
    ]
    return [*records, end(tuples)]


def test_what_has_no_room_is_null_for_the_engine_and_for_the_oracle() -> None:
    settings = _settings(aggregates=_OF_TEXTS, types={"s": "string", "n": "int64"}, **_LITTLE_ROOM)
    topics = run(settings, [_long_texts()])
    report = topics.check()
    assert report.first == ()
    assert report.unfit > 20
    for name in _OF_TEXTS:
        nulls = [row for row in topics.rows if row[name] is None]
        assert len(nulls) < len(topics.rows), name
    # A value where null is due is a difference, and so is null where a value is due.
    for name in ("least", "some", "kinds", "top", "alike", "exactly"):
        other = next(row for row in topics.rows if row[name] is not None)
        nulls = [row for row in topics.rows if row[name] is None]
        for row, value in ((other, None), *((null, other[name]) for null in nulls[:1])):
            rows = [dict(one, **{name: value}) if one is row else one for one in topics.rows]
            changed = Topics(topics.settings, topics.inputs, topics.rejected, rows, topics.committed)
            assert changed.check().kinds == {"value": 1}, name
