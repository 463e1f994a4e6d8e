from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from evenflow.settings.views import view
from evenflow.twostep import readable_schema
from tests.examples import examples
from tests.unit.workbench.verify.pipeline_model import Record, Topics, end, record, run

_AGGREGATES = {
    "count": "count",
    "total": "sum(v)",
    "mean": "mean(v)",
    "low": "min(v)",
    "high": "max(n)",
    "n": "sum(n)",
}


def _settings(**query: Any) -> Settings:
    base = {"window": 40, "slide": 10, "aggregates": _AGGREGATES, "types": {"n": "int64"}}
    return Settings(query={**base, **query}, input={"partitions": 2})


@pytest.fixture
def topics() -> Topics:
    first = [record("a", 5, v=1.5, n=1), record("b", 17, v=None, n=2), record("a", 58, v=-0.25, n=-3)]
    first += [record("a", 3, v=1.0, n=1), Record(b"{nonsense", None), record("a", 61, n=4), end(6)]
    second = [record("b", 12, v=2.0, n=7), record("c", 90, v=0.1, n=0), end(2)]
    return run(_settings(), [first, second])


def _kinds(topics: Topics) -> dict[str, int]:
    return topics.check().kinds


def test_a_correct_pipeline_has_no_difference(topics: Topics) -> None:
    report = topics.check()
    assert report.first == ()
    assert report.exact
    assert report.ended
    assert report.rows == len(topics.rows)
    assert (report.read, report.routed, report.rejected) == (8, 6, 2)
    assert report.text().splitlines()[-1] == "0 differences"
    assert json.loads(report.json())["differences"] == 0


def test_a_missing_row_is_found(topics: Topics) -> None:
    gone = topics.rows.pop(3)
    report = topics.check()
    assert report.kinds == {"missing": 1}
    assert report.first[0].window_end == gone["window_end"]
    assert report.text().splitlines()[-1] == "1 difference"


@pytest.mark.parametrize("wrong", ["absent", None, "2", 2.5, 3])
def test_a_number_of_tuples_that_is_none_or_another_is_seen(wrong: Any) -> None:
    topics = run(_settings(aggregates={"high": "max(n)"}), [[record("a", 5, n=1), end(1)], [end(0)]])
    topics.rows[0]["_tuples"] = wrong
    if wrong == "absent":
        del topics.rows[0]["_tuples"]
    assert _kinds(topics) == ({"value": 1} if wrong == 3 else {"malformed": 1, "missing": 1})


def test_a_row_for_a_window_that_holds_no_tuple_is_found(topics: Topics) -> None:
    topics.rows.append({**topics.rows[0], "window_start": 1000, "window_end": 1040})
    assert _kinds(topics) == {"unexpected": 1}


def test_a_row_for_a_key_that_nobody_sent_is_found(topics: Topics) -> None:
    topics.rows.append({**topics.rows[0], "key": "nobody"})
    assert _kinds(topics) == {"unexpected": 1}


def test_a_row_whose_window_has_another_length_is_found(topics: Topics) -> None:
    topics.rows[0] = {**topics.rows[0], "window_start": topics.rows[0]["window_start"] - 10}
    assert _kinds(topics) == {"missing": 1, "unexpected": 1}


@pytest.mark.parametrize(
    ("column", "wrong"), [("count", 9), ("total", 1.500001), ("mean", None), ("low", 1.4999999999), ("n", 0)]
)
def test_a_wrong_value_is_found(topics: Topics, column: str, wrong: Any) -> None:
    topics.rows[0] = {**topics.rows[0], column: wrong}
    report = topics.check()
    assert report.kinds == {"value": 1}
    assert report.first[0].column == column


def test_a_float_sum_may_be_off_by_its_rounding_only(topics: Topics) -> None:
    topics.rows[0] = {**topics.rows[0], "total": 1.5 * (1 + 9e-10)}
    assert topics.check().exact
    topics.rows[0] = {**topics.rows[0], "total": 1.5 * (1 + 2e-9)}
    assert _kinds(topics) == {"value": 1}


def test_a_float_sum_beyond_all_floats_is_infinite() -> None:
    topics = run(_settings(), [[record("a", 5, v=1e308), record("a", 6, v=1e308), end(2)], [end(0)]])
    topics.rows = [{**row, "total": "Infinity", "mean": "Infinity"} for row in topics.rows]
    assert topics.check().exact


def test_ranks_that_are_not_those_of_their_values_are_found() -> None:
    records = [record("a", 5), record("a", 6), record("b", 7), record("c", 8), record("c", 9), record("c", 9)]
    topics = run(_settings(emit="top(2, count)", window=40, slide=40), [[*records, end(6)], [end(0)]])
    ranks = {"c": 1, "a": 2}
    topics.rows = [
        row | {"rank": ranks[row["key"]], "_tuples_of_all": 6} for row in topics.rows if row["key"] in ranks
    ]
    assert topics.check().first == ()
    for row in topics.rows:
        row["rank"] = 3 - row["rank"]
    report = topics.check()
    assert set(report.kinds) == {"value"}
    assert any(line.column == "rank" for line in report.first)


def test_a_row_written_twice_alike_is_no_difference(topics: Topics) -> None:
    topics.rows.append(topics.rows[2])
    assert topics.check().exact


def test_a_row_written_twice_with_another_value_is_found(topics: Topics) -> None:
    topics.rows.append({**topics.rows[0], "count": 77})
    assert _kinds(topics)["duplicate"] == 1


_PARTS = {"shop": "string", "n.o": "int64", "day": "date", "paid": "bool"}


def _of_several_columns(settings: Settings) -> Topics:
    """Results whose key has four parts."""
    keys = ['["a",1,"2026-01-31",true]', '["a",-1,"2026-01-31",false]', '["q\\"\\u001f",1,"0001-01-01",true]']
    records = []
    for time, key in enumerate([*keys, keys[0]], 5):
        shop, number, day, paid = json.loads(key)
        row = {"shop": shop, "n": {"o": number}, "day": day, "paid": paid, "time": time}
        records.append(Record(json.dumps(row).encode(), (key.encode(), time, {})))
    topics = run(settings, [[*records, end(4)], [end(0)]])
    for place, row in enumerate(topics.rows):
        topics.record_keys[place] = row["key"].encode()
        key = row.pop("key")
        row |= dict(zip(settings.query.result_keys, json.loads(key), strict=True))
    return topics


def test_the_parts_of_a_key_are_compared() -> None:
    settings = _settings(key=list(_PARTS), types=_PARTS, aggregates={"count": "count"})
    topics = _of_several_columns(settings)
    assert len(topics.rows) == 12
    assert topics.check().exact
    schema = readable_schema(settings.query)
    typed = [row | {"day": date.fromisoformat(row["day"])} for row in topics.rows]
    topics.typed_results = lambda: pa.Table.from_pylist(typed, schema=schema)  # type: ignore[method-assign]
    assert topics.check(typed=True).exact
    typed[0]["shop"] = "nobody"
    assert topics.check(typed=True).kinds == {"missing": 1, "unexpected": 1}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("shop", 5), ("n.o", "1"), ("n.o", 1.5), ("day", "soon"), ("paid", "true"), ("paid", None)],
)
def test_a_part_of_another_type_or_none_is_found(name: str, wrong: Any) -> None:
    topics = _of_several_columns(_settings(key=list(_PARTS), types=_PARTS, aggregates={"count": "count"}))
    topics.rows[0][name] = wrong
    assert _kinds(topics) == {"malformed": 1, "missing": 1}


def test_a_part_that_is_not_that_of_the_records_key_is_found() -> None:
    topics = _of_several_columns(_settings(key=list(_PARTS), types=_PARTS, aggregates={"count": "count"}))
    topics.rows[0]["n.o"] = 7
    assert _kinds(topics) == {"missing": 1, "placement": 1, "unexpected": 1}


@pytest.mark.parametrize(
    "row", [b"", b"\xff", b"{}", b"[1]", b'{"window_start":0,"window_end":40,"key":"a","count":"1"}']
)
def test_a_record_that_is_no_result_row_is_found(topics: Topics, row: bytes) -> None:
    topics.rows.append(row)  # type: ignore[arg-type]
    assert _kinds(topics) == {"malformed": 1}


def test_a_tuple_rejected_as_late_that_is_not_late_is_found(topics: Topics) -> None:
    topics.rejected.append({"partition": 0, "offset": 2, "reason": "late", "mark": None, "omitted": True})
    report = topics.check()
    assert report.kinds["rejected"] >= 1
    assert any(d.kind == "rejected" and d.offset == 2 for d in report.first)


def test_a_readable_record_rejected_as_unreadable_is_found(topics: Topics) -> None:
    topics.rejected.append({"partition": 1, "offset": 0, "reason": "unreadable", "omitted": True})
    assert any(d.kind == "rejected" and (d.partition, d.offset) == (1, 0) for d in topics.check().first)


def test_a_late_tuple_that_was_not_rejected_is_found(topics: Topics) -> None:
    topics.rejected = [r for r in topics.rejected if r["reason"] != "late"]
    report = topics.check()
    assert any(d.kind == "not-rejected" and (d.partition, d.offset) == (0, 3) for d in report.first)


def test_an_unreadable_record_that_was_not_rejected_is_found(topics: Topics) -> None:
    topics.rejected = [r for r in topics.rejected if r["reason"] != "unreadable"]
    topics.recommit(0, rejected=1, routed=5)
    assert _kinds(topics) == {"unreadable": 1}


def test_a_record_after_the_end_that_was_not_rejected_is_found(topics: Topics) -> None:
    topics.inputs.append({"partition": 1, "offset": 3, "timestamp": 0, "value": record("c", 91).value})
    topics.recommit(1, offset=4, read=3, routed=3, max_time=91)
    assert _kinds(topics)["not-rejected"] == 1


def test_a_record_before_the_end_rejected_as_after_it_is_found(topics: Topics) -> None:
    topics.rejected[0]["reason"] = "after-end"
    assert _kinds(topics)["rejected"] == 1


@pytest.mark.parametrize("reason", ["idle", "jump", "tired"])
def test_a_rejection_that_nothing_justifies_is_found(topics: Topics, reason: str) -> None:
    topics.rejected[0]["reason"] = reason
    assert _kinds(topics)["rejected"] >= 1


def test_a_late_rejection_by_another_mark_is_found(topics: Topics) -> None:
    topics.rejected[0]["mark"] += 1
    assert _kinds(topics) == {"rejected": 1}


def test_a_rejected_record_that_was_changed_is_found(topics: Topics) -> None:
    topics.rejected[1]["value"] = b"{nonsens"
    assert _kinds(topics) == {"rejected": 1}


def test_a_record_rejected_twice_is_found(topics: Topics) -> None:
    topics.rejected.append(topics.rejected[0])
    assert _kinds(topics) == {"rejected": 1}


def test_a_rejection_of_a_marker_is_found(topics: Topics) -> None:
    topics.rejected.append({"partition": 1, "offset": 2, "reason": "unreadable", "omitted": True})
    assert _kinds(topics) == {"rejected": 1}


@pytest.mark.parametrize("counter", ["read", "routed", "rejected"])
def test_a_counter_that_is_off_is_found(topics: Topics, counter: str) -> None:
    topics.recommit(0, **{counter: 3})
    assert set(_kinds(topics)) == {"counters"}


@pytest.mark.parametrize("change", [{"max_time": 62}, {"ended": False}, {"idle_mark": 7, "mark": 7}])
def test_committed_progress_that_does_not_follow_from_the_records_is_found(
    topics: Topics, change: dict[str, Any]
) -> None:
    topics.recommit(0, **change)
    assert "state" in _kinds(topics)


def test_windows_that_are_still_open_are_counted_and_not_compared() -> None:
    topics = run(_settings(), [[record("a", 5), record("a", 47)], [record("a", 31), record("b", 33)]])
    report = topics.check()
    assert report.exact
    assert not report.ended
    assert (report.windows, report.mark, report.open_windows) == (3, 33, 5)
    assert "5 windows that are open" in report.text()


def test_windows_newer_than_any_result_are_pending_while_the_input_runs() -> None:
    topics = run(_settings(), [[record("a", 5), record("a", 47)], [record("a", 31)]])
    topics.rows = [row for row in topics.rows if row["window_end"] <= 20]
    report = topics.check()
    assert (report.differences, report.windows, report.pending_windows) == (0, 2, 1)
    topics.rows = []
    assert topics.check().pending_windows == 3


def test_an_ended_input_has_no_pending_windows(topics: Topics) -> None:
    topics.rows = [row for row in topics.rows if row["window_end"] <= 40]
    report = topics.check()
    assert report.pending_windows == 0
    assert set(report.kinds) == {"missing"}


def test_a_row_of_a_window_that_is_not_due_is_found() -> None:
    topics = run(_settings(), [[record("a", 5), record("a", 47)], [record("a", 31)]])
    row = {"window_start": 0, "window_end": 40, "key": "a", "count": 2, "total": None, "mean": None}
    topics.rows.append({**row, "low": None, "high": None, "n": None})
    assert _kinds(topics) == {"not-due": 1}


def test_nothing_is_due_before_every_partition_has_a_mark() -> None:
    report = run(_settings(), [[record("a", 5)], []]).check()
    assert (report.exact, report.rows, report.mark) == (True, 0, None)


def test_an_input_without_any_record_has_no_difference() -> None:
    assert run(_settings(), [[end(0)], [end(0)]]).check().exact


def test_windows_before_emit_from_are_not_emitted() -> None:
    topics = run(_settings(emit_from=0), [[record("a", 5), record("a", 47), end(2)], [end(0)]])
    assert topics.check().exact
    topics.settings = _settings()
    assert set(_kinds(topics)) == {"missing"}
    topics = run(_settings(), [[record("a", 5), record("a", 47), end(2)], [end(0)]])
    topics.settings = _settings(emit_from=0)
    assert set(_kinds(topics)) == {"unexpected"}


def test_records_behind_the_committed_offset_are_left_out(topics: Topics) -> None:
    topics.inputs.append({"partition": 1, "offset": 3, "timestamp": 0, "value": b"later"})
    topics.rejected.append({"partition": 1, "offset": 3, "reason": "after-end", "omitted": True})
    assert topics.check().exact


def test_a_tuple_behind_the_idle_mark_is_rightly_rejected_as_idle() -> None:
    topics = run(_settings(), [[record("a", 5), record("a", 80)], [record("a", 64)]], idle_mark=64)
    assert [r["reason"] for r in topics.rejected] == ["idle"]
    assert topics.check().exact


def test_only_some_differences_of_a_kind_are_kept_but_all_are_counted(topics: Topics) -> None:
    topics.rows = []
    report = topics.check(limit=2)
    assert len(report.first) == 2
    assert report.differences == report.rows > 2


def test_typed_results_are_compared_like_json(topics: Topics) -> None:
    assert topics.check(typed=True).exact
    topics.rows.pop(0)
    assert topics.check(typed=True).kinds == {"missing": 1}


def test_a_row_that_is_there_twice_is_found_where_each_is_promised_once(topics: Topics) -> None:
    topics.rows.append(topics.rows[0])
    assert topics.check(typed=True).exact
    report = topics.check(typed=True, repeats=False)
    assert report.kinds == {"duplicate": 1}
    assert (report.first[0].detail, report.first[0].got) == ("written more than once", 2)


def test_keys_that_are_whole_numbers_are_numbers_in_the_results() -> None:
    keys = [8, -5, -(2**63), 2**63 - 1]
    records = [
        Record(json.dumps({"key": key, "time": 5}).encode(), (b"%d" % key, 5, {})) for key in (*keys, *keys)
    ]
    topics = run(_settings(types={"key": "int64"}, aggregates={"n": "count"}), [[*records, end(8)], [end(0)]])
    assert {row["key"] for row in topics.rows} == set(keys)
    assert topics.check().exact
    assert topics.check(typed=True, repeats=False).exact
    for number, wrong in enumerate(["8", 8.0, None, True]):
        topics.record_keys[number] = str(topics.rows[number]["key"]).encode()
        topics.rows[number] = {**topics.rows[number], "key": wrong}
    assert topics.check().kinds == {"malformed": 4, "missing": 4}


@pytest.mark.parametrize("type_", ["string", "int64"])
def test_a_view_with_a_key_of_its_own_is_compared_by_that_key_and_leaves_out_tuples_without_it(
    type_: str,
) -> None:
    views = {"v": {"key": "area", "aggregates": {"n": "count", "late": "last(x)"}}}
    seen = view(_settings(views=views, types={"area": type_}), "v")
    of = (lambda number: number) if type_ == "int64" else str
    areas = [of(1), None, of(2), of(1), None]
    records = [record("ab"[at % 2], 10 * at, x=1.0 * at, area=area) for at, area in enumerate(areas)]
    result = run(seen, [[*records, end(len(records))]])
    assert {row["key"] for row in result.rows} == {of(1), of(2)}
    assert result.check().exact
    result.rows[0]["n"] += 1
    assert result.check().differences > 0


@pytest.mark.parametrize("of", ["max(v)", "sum(v)"])
def test_an_expression_is_compared_by_what_it_reads_or_where_that_is_rounded_by_its_own_row(of: str) -> None:
    settings = _settings(aggregates={"n": "count", "x": of, "r": "= x / n"}, types={})
    result = run(settings, [[record("a", 5, v=1.1), record("a", 6, v=0.3), record("b", 7, v=2.0), end(3)]])
    assert result.check().exact
    result.rows[0]["r"] *= 1.0001
    assert _kinds(result) == {"value": 1}


def test_the_rows_of_a_summary_are_compared_with_those_that_the_parts_have_by_the_input() -> None:
    summary = {
        "of": {"query": "at", "v": "key"},
        "aggregates": {"keys": "count(at)", "hi": "max(hi)", "r": "= hi / keys"},
        "having": "keys > 0 and hi is not null",
        "emit": "top(2, r)",
    }
    views = {"v": {"key": "start", "window": "20ms", "aggregates": {"hi": "max(v)"}}}
    types = {"at": "string", "start": "string"}
    query = {"aggregates": {"at": "last(at)"}, "views": views, "summaries": {"s": summary}, "types": types}
    places = ["x", "y", None, "z", "x", "y", "z", "x"]
    records = [
        record("abc"[at % 3], 7 * at, at=place, start=places[-at], v=float(at % 4))
        for at, place in enumerate(places)
    ]
    result = run(view(_settings(**query), "s"), [[*records, end(len(records))]])
    rows = [row for row in result.rows if row["keys"] and row["hi"] is not None]
    result.rows = []
    for at in sorted({row["window_end"] for row in rows}):
        inside = sorted(
            (row for row in rows if row["window_end"] == at), key=lambda row: (-row["r"], row["key"].encode())
        )
        result.rows += [row | {"rank": rank} for rank, row in enumerate(inside[:2], 1)]
    assert result.rows
    whole = run(
        view(_settings(**query | {"summaries": {"s": summary | {"emit": "all"}}}), "s"), [[*records, end(8)]]
    )
    for row in result.rows:
        row["_tuples_of_all"] = sum(
            other["_tuples"] for other in whole.rows if other["window_end"] == row["window_end"]
        )
    assert result.check().exact, result.check().text()
    assert result.check().tuples.due > 0
    result.rows[0]["keys"] += 1
    result.rows[1]["_tuples"] -= 1
    assert _kinds(result)["value"] >= 2
    del result.rows[2]
    assert _kinds(result)["missing"] == 1


def test_a_sum_that_does_not_fit_int64_is_null_and_counted() -> None:
    most, least = 2**63 - 1, -(2**63)
    low = [record("low", 5, n=least), record("low", 6, n=-1)]
    fits = [record("fits", 5, n=most), record("fits", 6, n=-1)]
    high = [record("high", 5, n=most), record("high", 26, n=1)]
    topics = run(_settings(), [[*low, *fits, *high, end(6)], [end(0)]])
    report = topics.check()
    assert report.exact
    # the windows that end at 10 to 40 hold both of "low", those at 30 and 40 both of "high"
    assert report.unfit == 6
    assert "6 values do not fit int64 or their room and are null" in report.text()
    assert json.loads(report.json())["unfit"] == 6
    assert topics.check(typed=True).unfit == 6
    fine = [i for i, row in enumerate(topics.rows) if row["key"] == "fits"]
    topics.rows[fine[0]] = {**topics.rows[fine[0]], "n": None}
    nulls = [i for i, row in enumerate(topics.rows) if row["key"] == "low"]
    topics.rows[nulls[0]] = {**topics.rows[nulls[0]], "n": least - 1}
    topics.rows[nulls[1]] = {**topics.rows[nulls[1]], "n": most}
    assert topics.check().kinds == {"value": 3}


def test_a_result_record_whose_key_is_not_the_rows_key_is_found(topics: Topics) -> None:
    topics.record_keys[0] = None
    topics.record_keys[1] = b"nobody"
    report = topics.check()
    assert report.kinds == {"placement": 2}
    assert "the record's key is not the row's key" in report.first[0].detail


def test_a_key_whose_rows_lie_in_two_partitions_is_found(topics: Topics) -> None:
    first = next(i for i, row in enumerate(topics.rows) if row["key"] == "a")
    topics.places[first] = (1, 0)
    report = topics.check()
    assert report.kinds == {"placement": 1}
    assert (report.first[0].key, report.first[0].expected, report.first[0].got) == ("'a'", "0", "1")


def test_a_row_repeated_in_another_partition_is_found(topics: Topics) -> None:
    topics.rows.append(topics.rows[2])
    topics.places[len(topics.rows) - 1] = (1, 0)
    assert _kinds(topics) == {"placement": 1}


def test_a_replay_without_end_before_another_one_is_no_difference_and_is_said() -> None:
    """Rule "an end is announced": the partition ends with the marker.

    What nobody announced was read and routed like all else.
    """
    first, second = [record("a", 5), record("a", 6)], [record("b", 7)]
    topics = run(_settings(), [[*first, *second, end(1)], [end(0)]])
    report = topics.check()
    assert report.exact
    assert [counters.unannounced for counters in report.counters] == [2, 0]
    assert "2 tuples more than the producers' markers announce" in report.text()


def test_of_two_announced_producers_one_may_have_replayed_before_without_end() -> None:
    records = [
        record("a", 5),
        end(1, "p0", 2),
        record("a", 6),
        record("a", 7),
        end(1, "p0", 2),
        end(1, "p1", 2),
    ]
    assert run(_settings(), [records, [end(0)]]).check().exact


def test_a_marker_that_announces_more_tuples_than_there_are_is_found() -> None:
    topics = run(_settings(), [[record("a", 5), end(2)], [end(0)]])
    assert topics.check().kinds == {"counters": 1}


def test_typed_results_may_have_a_column_named_value() -> None:
    topics = run(_settings(aggregates={"value": "count"}, types={}), [[record("a", 5), end(1)], [end(0)]])
    assert topics.check(typed=True).exact
    topics.rows[0] = {**topics.rows[0], "value": 2}
    assert topics.check(typed=True).kinds == {"value": 1}


_keys = st.sampled_from(["", "a", "b", 'q"uote\\', "line\nbreak", "ключ", "\x00", "nan"])
_tuples = st.builds(
    record,
    _keys,
    st.integers(-120, 160),
    v=st.none() | st.floats(-1e6, 1e6),
    n=st.none() | st.integers(-(2**60), 2**60),
)
_poison = st.sampled_from(
    [b"", b"{", b"[]", b'{"key":null,"time":1}', b'{"key":"a"}', b'{"key":"\xff","time":3}']
)
_records = st.one_of(_tuples, _tuples, _tuples, st.builds(Record, _poison, st.none()))


@given(
    partitions=st.lists(st.lists(_records, max_size=12), min_size=2, max_size=2),
    ended=st.booleans(),
    delay=st.sampled_from([0, 15]),
    jump=st.sampled_from([None, 30]),
    slide=st.sampled_from([10, 20, 40]),
    idle=st.booleans(),
)
@examples(100, suppress_health_check=[HealthCheck.too_slow])
def test_any_stream_through_a_correct_pipeline_has_no_difference(
    partitions: list[list[Record]], ended: bool, delay: int, jump: int | None, slide: int, idle: bool
) -> None:
    if ended:
        partitions = [[*records, end(len(records))] for records in partitions]
    settings = _settings(slide=slide, out_of_orderness=delay, max_jump=jump, jump_confirmations=2)
    other = run(settings, partitions).committed[1]
    slept = idle and other.max_time is not None  # the mark of the partition that is awake
    topics = run(settings, partitions, idle_mark=other.max_time - delay if slept else None)
    report = topics.check()
    assert report.first == ()
    assert report.rows == len(topics.rows)
