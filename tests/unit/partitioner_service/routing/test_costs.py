"""What tuples cost decides who gets them and which loads are told, and never which records are rejected."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evenflow.errors import ConfigError
from evenflow.partitioners.base import Block
from evenflow.partitioners.costs import MAX_COST, weighed
from evenflow.partitioners.simple.hashing import Hashing
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.block import Slice
from partitioner_service.kafka.learned_state import new_partitioner
from partitioner_service.reading.parse import ParsedBlock, Parser, taken_apart
from partitioner_service.reading.registered.schemas import Schemas
from partitioner_service.reports.rejections import RejectionCounts
from partitioner_service.reports.status import Work
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.router import Router
from tests.examples import examples
from tests.unit.partitioner_service.reading.registered_records import URL, Kept, avro, record_of

ITEMS: dict[str, Any] = {"explode": "items"}


def settings(cost: str | None, *, form: dict[str, Any] | None = None, **query: Any) -> Settings:
    return Settings(
        query={"name": "q", "key": "k", "time": "t", "window": "10s", "aggregates": {"n": "count"}} | query,
        input={"partitions": 1} | (form or {}),
        partitioner={"name": "hashing", "workers": 4, "cost": cost},
    )


def values(rows: Sequence[dict[str, Any] | bytes]) -> list[bytes]:
    return [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]


def parsed(cost: str | None, *rows: dict[str, Any] | bytes, **query: Any) -> ParsedBlock:
    return Parser(settings(cost, **query)).parse(values(rows))


def costs(cost: str, *rows: dict[str, Any] | bytes, **query: Any) -> list[float | None]:
    """The cost of each tuple, None where it is no number."""
    result = parsed(cost, *rows, **query).costs
    assert result is not None
    return [None if np.isnan(one) else one for one in result.tolist()]


def routed(one: Settings, rows: Sequence[dict[str, Any] | bytes]) -> RoutedBlock:
    state = PartitionState(fingerprint=one.fingerprint, topic_id="t", offset=0)
    some = values(rows)
    return Router(one, new_partitioner(one)).route([Slice(0, 0, len(some) - 1, some)], {0: state})


def row(number: int, **other: Any) -> dict[str, Any]:
    return {"k": f"k{number % 7}", "t": number} | other


# ---- parse


def test_a_column_that_only_the_cost_reads_is_the_cost_and_is_not_shipped() -> None:
    result = parsed("size", row(0, size=3), row(1, size=2.5))
    assert result.costs is not None
    assert result.costs.tolist() == [3, 2.5]
    assert result.values.num_columns == 0


def test_an_expression_reads_columns_of_the_record_of_the_query_and_derived_ones() -> None:
    query = {
        "aggregates": {"s": "sum(twice)"},
        "columns": {"twice": "amount * 2"},
        "types": {"amount": "decimal(2)"},
    }
    rows = [row(0, amount=1.5, size=2), row(1, amount=10, size=None), row(2, size=4)]
    assert costs("coalesce(size, 1) + twice + amount", *rows, **query) == [6.5, 31, None]


def test_without_a_cost_no_costs_are_parsed() -> None:
    assert parsed(None, row(0, size=3)).costs is None


@pytest.mark.parametrize("held", ["text", {"a": 1}, [1], True, None, float("nan"), 1e400, "\ud800", 10**30])
@pytest.mark.parametrize("cost", ["size", "size * 2 + 1", "size % 3"])
def test_nothing_that_a_column_of_the_cost_holds_rejects_a_record(held: Any, cost: str) -> None:
    result = parsed(cost, row(0, size=held), row(1, size=2), row(2))
    plain = parsed(None, row(0, size=held), row(1, size=2), row(2))
    assert dict(result.bad) == dict(plain.bad)
    assert result.keys.equals(plain.keys)
    assert result.costs is not None
    assert len(result.costs) == len(result.keys)


def test_a_column_of_the_cost_that_a_record_holds_twice_does_not_reject_it() -> None:
    assert costs("size", b'{"k":"a","t":1,"size":1,"size":2}', row(1, size=5)) == [None, 5]


def test_a_path_of_the_cost_through_something_that_is_no_object_is_null() -> None:
    rows = [row(0, user={"size": 3}), row(1, user=7), row(2)]
    assert costs("user.size", *rows) == [3, None, None]
    # The query itself reads `user` as text.
    by_user = {"key": "user"}
    assert not parsed("user.size", row(0, user="a"), **by_user).bad


def test_costs_of_filtered_and_unreadable_records_are_left_out() -> None:
    rows: list[dict[str, Any] | bytes] = [row(0, size=3), b"{", row(2, size=5), {"t": 3, "size": 7}]
    result = parsed("size", *rows, where="t > 1")
    assert (list(result.bad), result.counts.tolist()) == ([1, 3], [0, 1])  # type: ignore[union-attr]
    assert result.costs is not None
    assert result.costs.tolist() == [5]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ("items.weight", [1, None, 4, 9]),
        ("items.weight * urgency", [2, None, 8, None]),
        ("urgency", [2, 2, 2, None]),
        ("length(k) * items.weight", [2, None, 8, 18]),
        ("many * items.weight + half", [12, None, 48, None]),
    ],
)
def test_costs_of_elements_may_read_the_elements_and_their_record(
    cost: str, expected: list[float | None]
) -> None:
    query = ITEMS | {
        "columns": {"half": "items.price / 2", "many": "urgency * 5"},
        "aggregates": {"s": "sum(half)", "m": "sum(many)"},
    }
    rows = [
        {"k": "aa", "t": 1, "urgency": 2, "items": [{"weight": 1, "price": 4}, {"weight": "x"}, {"weight": 4,
        "price": 16}]},
        {"k": "bb", "t": 1, "urgency": 3, "items": []},
        {"k": "cc", "t": 1, "items": [{"weight": 9}]},
    ]  # fmt: skip
    assert costs(cost, *rows, **query) == expected


def test_elements_that_nothing_else_reads_are_read_for_the_cost() -> None:
    assert costs("length(tags)", {"k": "a", "t": 1, "tags": "ab;c;"}, explode="split(tags, ';')") == [2, 1, 0]


def test_csv_and_text_have_costs_too() -> None:
    csv = {"format": "csv", "columns": ["k", "t", "size"]}
    parser = Parser(settings("size", form=csv))
    result = parser.parse([b"a,1,3", b"b,2,many", b"c,3,", b"d,4,inf", b"e,5"])
    assert list(result.bad) == [4]
    assert result.costs is not None
    assert result.costs[0] == 3
    assert np.isnan(result.costs[1:]).all()
    text = Parser(settings("length(value)", form={"format": "text"}, key="@key", time="@timestamp"))
    result = text.parse([b"abc", None, b"\xff"], keys=[b"a", b"b", b"c"], timestamps=[1, 2, 3])
    assert not result.bad, "the query itself reads nothing of the value"
    assert result.costs is not None
    assert result.costs[0] == 3
    assert np.isnan(result.costs[1:]).all()


HELD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.integers(-5, 10**7), st.floats(-10, 1e7), st.text(max_size=2), st.just({})
)
ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"k": st.sampled_from("abc"), "t": st.integers(0, 9)},
            optional={"size": HELD, "items": st.lists(st.fixed_dictionaries({}, optional={"w": HELD}),
            max_size=3)},
        ),
        st.just(b"{"),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


@examples(60)
@given(
    rows=ROWS,
    cuts=st.lists(st.integers(0, 25), max_size=3),
    exploded=st.booleans(),
    cost=st.sampled_from(["size", "size + 1", "items.w", "coalesce(items.w, 2) * coalesce(size, 3)"]),
)
def test_costs_of_a_block_do_not_depend_on_how_it_is_cut(
    rows: list[Any], cuts: list[int], exploded: bool, cost: str
) -> None:
    one = (
        settings(cost, **(ITEMS if exploded else {})) if exploded or "items" not in cost else settings("size")
    )
    parser, some = Parser(one), values(rows)
    whole = parser.parse(some)
    bounds = sorted({0, len(some), *(cut for cut in cuts if cut < len(some))})
    sizes = np.diff(bounds).tolist()
    alone = [parser.parse(some[a:b]) for a, b in pairwise(bounds)]
    for cut, piece in zip(taken_apart(whole, sizes), alone, strict=True):
        assert cut.costs is not None
        assert piece.costs is not None
        assert len(cut.costs) == len(cut.keys)
        np.testing.assert_array_equal(cut.costs, piece.costs)
    plain = Parser(one.without_cost()).parse(some)
    assert dict(plain.bad) == dict(whole.bad)
    assert plain.keys.equals(whole.keys)


ANY = st.one_of(HELD, st.booleans(), st.lists(st.just(1), max_size=1), st.just(2**70), st.just("x" * 40))
BROKEN = [
    b"{", b"", b'{"k":"a","t":1,"w":1,"w":2}', b'{"k":"a","t":1,"v":1,"v":2}',
    b'{"k":"a","t":1,"w":"\\ud800"}',
]  # fmt: skip
HOSTILE = st.lists(
    st.fixed_dictionaries(
        {"k": st.one_of(st.just("a"), ANY), "t": st.one_of(st.integers(0, 9), ANY)},
        optional={
            "v": ANY,
            "w": ANY,
            "d": st.one_of(ANY, st.just("2026-01-31")),
            "u": st.one_of(ANY, st.fixed_dictionaries({}, optional={"a": ANY, "b": ANY})),
            "items": st.one_of(ANY, st.lists(st.one_of(ANY, st.fixed_dictionaries({}, optional={"w": ANY,
            "v": ANY})))),
        },
    )
    .map(json.dumps)
    .map(str.encode)
    | st.sampled_from(BROKEN)
    | st.none(),
    max_size=20,
)  # fmt: skip


def assert_nothing_but_costs_differs(one: Settings, some: Sequence[bytes | None]) -> None:
    weighing, plain = Parser(one).parse(some), Parser(one.without_cost()).parse(some)
    assert dict(weighing.bad) == dict(plain.bad)
    assert weighing.rows.tolist() == plain.rows.tolist()
    assert weighing.times.tolist() == plain.times.tolist()
    assert weighing.tuple_times.tolist() == plain.tuple_times.tolist()
    assert weighing.keys.equals(plain.keys)
    assert weighing.values.equals(plain.values)
    assert weighing.costs is not None
    assert len(weighing.costs) == len(weighing.keys)


@examples(100)
@given(
    some=HOSTILE,
    cost=st.sampled_from(
        ["w", "v + w", "length(w)", "day(d)", "u.a", "coalesce(u.b, w)", "w % 2", "length(u)", "v", "items"]
    ),
    where=st.sampled_from([None, "v > 0", "u.a IS NULL"]),
)
def test_a_cost_changes_nothing_else_that_is_parsed(
    some: list[bytes | None], cost: str, where: str | None
) -> None:
    types = {"u.a": "float64"} if where is not None and "u.a" in where else {}
    assert_nothing_but_costs_differs(
        settings(cost, where=where, types=types, aggregates={"s": "sum(v)"}), some
    )


@examples(100)
@given(
    some=HOSTILE,
    cost=st.sampled_from(["w", "items.w", "items.v * items.w", "items.v", "length(items.w)", "items.w + w"]),
    counts=st.booleans(),
)
def test_a_cost_of_elements_changes_nothing_else_that_is_parsed(
    some: list[bytes | None], cost: str, counts: bool
) -> None:
    aggregates = {"n": "count"} if counts else {"s": "sum(items.v)"}
    assert_nothing_but_costs_differs(settings(cost, explode="items", aggregates=aggregates), some)


@examples(50)
@given(
    rows=st.lists(
        st.lists(
            st.sampled_from(["a", "1", "", "x", "2.5", "nan", "99999999999999999999", '"q""q"', "\xff"]),
            min_size=3,
            max_size=5,
        ),
        max_size=20,
    ),
    cost=st.sampled_from(["w", "v + w", "length(w)", "w % 2"]),
)
def test_a_cost_changes_nothing_else_of_csv(rows: list[list[str]], cost: str) -> None:
    form = {"format": "csv", "columns": ["k", "t", "v", "w"]}
    some = [",".join(row).encode("latin-1") for row in rows]
    assert_nothing_but_costs_differs(settings(cost, form=form, aggregates={"s": "sum(v)"}), some)


def test_costs_are_read_of_avro_whatever_its_schemas_hold() -> None:
    texts = [
        record_of(("k", "string"), ("t", "long"), ("v", "double"), ("w", "int")),
        record_of(("k", "string"), ("t", "long"), ("v", "double"), ("w", "string")),
        record_of(("k", "string"), ("t", "long"), ("v", "double")),
    ]
    rows = [
        {"k": "a", "t": 1, "v": 2.0, "w": 7},
        {"k": "b", "t": 2, "v": 3.0, "w": "x"},
        {"k": "c", "t": 3, "v": 4.0},
    ]
    some = [avro(text, row, number) for number, (text, row) in enumerate(zip(texts, rows, strict=True), 1)]
    kept = Schemas(Kept("avro", *map(json.dumps, texts)))
    one = Settings(
        query={"name": "q", "key": "k", "time": "t", "window": "1s", "aggregates": {"s": "sum(v)"}},
        input={"format": "avro", "registry": URL, "partitions": 1},
        partitioner={"name": "hashing", "cost": "w + v"},
    )
    result = Parser(one, schemas=kept).parse([*some, b"junk", some[0]])
    assert list(result.bad) == [3]
    assert result.values["v"].to_pylist() == [2, 3, 4, 2]
    assert result.costs is not None
    np.testing.assert_array_equal(result.costs, [9, np.nan, np.nan, 9])


# ---- whole numbers within the range


def test_costs_are_rounded_and_brought_into_the_range_and_counted() -> None:
    numbers = np.array([1.4, 2.6, 0.2, -3, np.nan, MAX_COST + 0.2, MAX_COST + 1, np.inf, -np.inf])
    result = weighed(numbers)
    assert result.costs.tolist() == [1, 3, 1, 1, 1, MAX_COST, MAX_COST, MAX_COST, 1]
    assert (result.below, result.above) == (4, 2)


def test_a_division_by_zero_costs_the_most() -> None:
    assert costs("10 / size", row(0, size=0), row(1, size=5)) == [float("inf"), 2]


# ---- route


def test_loads_are_sums_of_costs_and_counts_are_numbers_of_tuples() -> None:
    rows = [row(number, size=number + 1) for number in range(50)]
    done = routed(settings("size"), rows)
    by_worker = np.bincount(done.sent.workers, weights=np.arange(1, 51), minlength=4)
    assert done.sent.loads.tolist() == by_worker.tolist()
    assert done.sent.counts.tolist() == np.bincount(done.sent.workers, minlength=4).tolist()
    assert done.sent.by_pane.loads.tolist() == [by_worker.tolist()]
    assert (done.tuples, int(done.sent.loads.sum())) == (50, 1_275)


def test_loads_of_several_panes_are_sums_of_costs() -> None:
    rows = [row(5_000 * number, size=10 * number) for number in range(8)]
    by_pane = routed(settings("size"), rows).sent.by_pane
    assert by_pane.panes.tolist() == [0, 1, 2, 3]
    assert by_pane.loads.sum(axis=1).tolist() == [1 + 10, 50, 90, 130]


def test_frames_are_those_of_a_query_without_cost() -> None:
    rows = [row(number, size=number) for number in range(30)]
    # The partitioner is `hashing`, which sends tuples the same way whatever they cost.
    with_cost, plain = routed(settings("size"), rows), routed(settings(None), rows)
    assert [worker for worker, _ in with_cost.frames] == [worker for worker, _ in plain.frames]
    assert [len(frame) for _, frame in with_cost.frames] == [len(frame) for _, frame in plain.frames]
    assert plain.sent.loads.tolist() == plain.sent.counts.tolist()


def test_costs_follow_their_tuples_into_the_order_of_event_time() -> None:
    rows = [row(9 - number, size=100 * number + 1) for number in range(10)]
    one = settings("size", out_of_orderness="1s")
    done = routed(one, rows)
    by_worker = np.bincount(done.sent.workers, weights=[100 * n + 1 for n in range(10)], minlength=4)
    assert done.sent.loads.tolist() == by_worker.tolist()
    router = Router(one, new_partitioner(one))
    some = values(rows)
    router.route(
        [Slice(0, 0, 9, some)], {0: PartitionState(fingerprint=one.fingerprint, topic_id="t", offset=0)}
    )
    assert router.plans.partitioner.observe().loads.tolist() == by_worker.tolist()


def test_late_tuples_take_their_costs_with_them() -> None:
    done = routed(settings("size"), [row(25_000, size=5), row(1, size=1_000), row(26_000, size=7)])
    assert int(done.sent.loads.sum()) == 12


def test_costs_out_of_range_are_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    one = settings("size")
    work = Work(RejectionCounts(one))
    done = routed(one, [row(0, size=0), row(1), row(2, size=5), row(3, size=5e6)])
    with caplog.at_level(logging.WARNING):
        work.note(done.sent)
        work.note(done.sent)
    assert (work.costs_below, work.costs_above) == (4, 2)
    assert [record.getMessage()[:70] for record in caplog.records] == [
        "partitioner.cost: 2 of 4 tuples cost less than 1, or have no number as",
        "partitioner.cost: 1 of 4 tuples cost more than 1,000,000. They count a",
    ]
    assert work.loads is not None
    assert work.counts is not None
    assert (work.loads.sum(), work.counts.sum()) == (2 * (1 + 1 + 5 + MAX_COST), 8)


def test_loads_of_a_partition_across_plan_changes_and_batches_keep_costs_with_their_tuples() -> None:
    one = settings("size")
    state = PartitionState(fingerprint=one.fingerprint, topic_id="t", offset=0)
    router, rows = Router(one, new_partitioner(one)), [row(number, size=number + 1) for number in range(40)]
    halves = [Slice(0, 0, 19, values(rows[:20])), Slice(1, 0, 19, values(rows[20:]))]
    done = router.route(halves, {0: state, 1: state})
    by_worker = np.bincount(done.sent.workers, weights=np.arange(1, 41), minlength=4)
    assert done.sent.loads.tolist() == by_worker.tolist()
    pieces = [piece for piece in router.pieces_by(10, [halves[0]], {0: state}) if piece.tuples is not None]
    assert [piece.tuples.costs.tolist() for piece in pieces] == [list(range(1, 11)), list(range(11, 21))]  # type: ignore[union-attr]


class ByCost(Hashing):
    """Sends dear tuples to worker 1, and others to worker 0."""

    def _assign(self, block: Block) -> None:
        block.out[:] = block.costs > 20


@examples(25)
@given(sizes=st.lists(st.sampled_from([None, "x", 1, 20, 20.4, 20.6, 21, 5e7]), min_size=1, max_size=30))
def test_a_partitioner_of_ones_own_decides_by_the_cost_of_each_tuple(sizes: list[Any]) -> None:
    one = Settings(
        query={"name": "q", "key": "k", "time": "t", "window": "10s", "out_of_orderness": "9s"},
        input={"partitions": 2},
        partitioner={"name": f"{__name__}:ByCost", "cost": "size", "workers": 4},
    )
    state = PartitionState(fingerprint=one.fingerprint, topic_id="t", offset=0)
    rows = [row(number * 7 % 31, size=size) for number, size in enumerate(sizes)]
    some = values(rows)
    slices = [Slice(0, 0, len(some) - 1, some), Slice(1, 0, len(some) - 1, some)]
    sent = Router(one, new_partitioner(one)).route(slices, {0: state, 1: state}).sent
    dear = [isinstance(size, int | float) and round(size) > 20 for size in sizes]
    assert sent.workers.tolist() == 2 * list(map(int, dear))


# ---- settings


@pytest.mark.parametrize(
    ("cost", "query", "form", "words"),
    [
        ("size *", {}, {}, "is no SQL expression"),
        ("k", {}, {}, "is text, but a cost is a number"),
        ("size > 3", {}, {}, "is true or false, but a cost is a number"),
        ("3", {}, {}, "reads no column"),
        ("length(size) + size", {}, {}, "it takes text, not a floating-point number"),
        ("log(size)", {}, {}, "is not in the language"),
        ("szie", {}, {"format": "csv", "columns": ["k", "t", "size"]}, "lacks; did you mean 'size'?"),
        ("size", {"key": "value", "time": "@timestamp"}, {"format": "text"}, "the one column 'value'"),
        ("tags", {"explode": "split(tags, ';')"}, {}, "length(...) of a text is a number"),
        ("length(note) * items.w", ITEMS, {}, "the text 'note' of the record beside"),
        ("a + a.b", {}, {}, "a.b"),
    ],
)
def test_a_cost_that_cannot_be_is_refused_in_words(
    cost: str, query: dict[str, Any], form: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(cost, form=form, **query)
    assert words in refused.value.errors()[0]["msg"]


def test_a_derived_column_for_the_cost_alone_is_refused_as_one_that_nothing_uses() -> None:
    with pytest.raises(ValidationError, match="which nothing uses"):
        settings("weight", columns={"weight": "size * 2"})


@pytest.mark.parametrize(
    ("name", "words"), [("dkg", "counts tuples"), ("prompt", "decides on whole batches")]
)
def test_a_partitioner_that_does_not_weigh_refuses_a_cost(name: str, words: str) -> None:
    one = Settings(partitioner={"name": name, "cost": "size"}, query={"slide": "1s", "window": "1s"})
    with pytest.raises(ConfigError, match=words) as refused:
        new_partitioner(one)
    assert "hashing" in str(refused.value.hint)


def test_a_cost_is_no_part_of_the_querys_identity() -> None:
    assert settings("size").identity() == settings("size / 2").identity() == settings(None).identity()
    assert settings("size").fingerprint == settings(None).fingerprint
    assert settings("size").needed_columns == settings(None).needed_columns
