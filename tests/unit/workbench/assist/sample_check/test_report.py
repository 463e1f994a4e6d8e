"""What a look says of records that do not fit: each case is a mistake that somebody made."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from tests.unit.workbench.assist.sample_check.samples import NOW, look, named, order, sample, settings
from workbench.assist.sample_check.propose import applied
from workbench.assist.sample_check.report import check_sample

HUNDRED = range(100)


def orders(**other: Any) -> list[dict[str, Any]]:
    return [order(number, **other) for number in HUNDRED]


def test_records_that_fit_have_nothing_to_propose() -> None:
    result = look(sample(orders()))
    assert (result.problems, result.proposal, result.toml()) == ([], {}, "")
    assert (
        result.summary() == "sample of orders: 100 records, 0 would be rejected, 10 keys, the hottest 10 %, "
        "times 2027-01-15 07:43:20 .. 07:43:20.990, in order"
    )


@pytest.mark.parametrize(
    ("rows", "query", "problem", "mended"),
    [
        (orders(), {"key": "usr"}, "none of 100 records has a column 'usr' (the key)", {"key": "user"}),
        (orders(), {"key": "USER"}, "has a column 'USER'", {"key": "user"}),
        (orders(), {"time": "when"}, "(the event time)", {"time": "at", "time_unit": "ms"}),
        (orders(), {"time_unit": "s"}, "gives times at the year 5", {"time_unit": "ms"}),
        (orders(), {"time_unit": "iso"}, "the event time needs ISO 8601 text", {"time_unit": "ms"}),
        (orders(at=1_790_000_000), {}, "gives times at 1970-01-21", {"time_unit": "s"}),
        (orders(at=1_790_000_000.5), {}, "a whole number of milliseconds", {"time_unit": "s"}),
        (orders(at=NOW * 1000), {}, "gives times at the year 59,009", {"time_unit": "us"}),
        (
            orders(at="2026-11-20T10:00:00Z"),
            {},
            "holds text, e.g. '2026-11-20T10:00:00Z'",
            {"time_unit": "iso"},
        ),
        (orders(user=7), {}, "holds whole numbers, e.g. 7, in all 100", {"types": {"user": "int64"}}),
        (
            orders(),
            {"types": {"amount": "int64"}},
            "sum(amount) needs a whole number",
            {"types": {"amount": "float64"}},
        ),
        (
            orders(tags=["a", "b"]),
            {"explode": "tgs"},
            "none of 100 records has a column 'tgs' (explode)",
            {"explode": "tags"},
        ),
        (
            orders(items=[{"sku": 7}, {"sku": 8}]),
            {"explode": "items", "key": "items.sku"},
            "holds whole numbers, e.g. 7, in all 200",
            {"types": {"items.sku": "int64"}},
        ),
        (
            orders(items=[{"sku": "a"}]),
            {"explode": "items", "key": "items.sk"},
            "none of 100 records has a column 'items.sk' (the key)",
            {"key": "items.sku"},
        ),
        (orders(), {"aggregates": {"s": "sum(amout)"}}, "(sum(amout))", {"aggregates": {"s": "sum(amount)"}}),
    ],
)
def test_what_cannot_be_meant_is_a_problem_and_mended_by_the_lines_to_paste(
    rows: list[dict[str, Any]], query: dict[str, Any], problem: str, mended: dict[str, Any]
) -> None:
    records = sample(rows)
    result = look(records, query=query)
    said = " ".join(finding.what for finding in result.findings)
    assert problem in said
    assert tomllib.loads(result.toml()) == {"query": mended}
    fitted = applied(result.settings, result.proposal)
    again = look(records, query=fitted.query.model_dump(exclude_unset=True))
    assert (again.problems, again.proposal) == ([], {})


@pytest.mark.parametrize(
    ("rows", "query", "words"),
    [
        (orders(), {"key": "amount", "aggregates": {"n": "count"}}, "never a decimal"),
        (orders(amount="12.5"), {}, "sum(amount) needs a number"),
        (orders(at=NOW * 10**6), {}, "looks like nanoseconds"),
        (
            [{"payload": [order(number)]} for number in HUNDRED],
            {},
            "none of 100 records has a column 'user' (the key)",
        ),
        (orders(), {"key": "@key"}, "all 100 records have no record key"),
        (orders(user=None), {}, "(the key) is missing or null in all 100 records"),
        ([b"\0\0\0\0\1 avro"] * 9, {}, "set input.format to avro or protobuf"),
        ([b"not JSON"] * 9, {}, "none of 9 records is a JSON object"),
    ],
)
def test_what_no_settings_mend_is_a_problem_that_says_what_to_do(
    rows: list[Any], query: dict[str, Any], words: str
) -> None:
    result = look(sample(rows), query=query)
    assert any(words in f"{finding.what} {finding.do}" for finding in result.problems)


def test_a_share_of_bad_records_is_a_warning_with_reason_and_example() -> None:
    rows: list[Any] = orders()
    rows[3]["amount"], rows[4], rows[5] = "free", b"{broken", None
    result = look(sample(rows))
    assert result.problems == []
    (rejected,) = named(result, "rejected")
    assert rejected.status == "warning"
    assert rejected.what.startswith("3 of 100 records would be rejected (3 %): ")
    assert "{broken" in rejected.what
    (amount,) = named(result, "sum(amount)")
    assert amount.what.startswith("column 'amount' holds text, e.g. 'free', in 1 of 98 records")


def test_a_column_that_some_records_lack_is_null_there_and_no_matter() -> None:
    rows = orders()
    del rows[7]["amount"]
    assert named(look(sample(rows)), "sum(amount)") == []
    (null,) = named(look(sample(orders(amount=None))), "sum(amount)")
    assert null.status == "warning"


def test_a_gap_that_idle_partitions_do_not_follow_is_named_where_only_one_partition_has_new_tuples() -> None:
    hour = 3_600_000
    gap = [order(n) | {"at": NOW - 5 * hour + n} for n in HUNDRED] + orders(at=NOW)
    idle = {"idle_timeout": "5s"}
    for rows in ([gap, []], [gap, [order(0) | {"at": NOW - 4 * hour}]], [gap, gap[:100]]):
        result = look(sample(*rows), partitioner=idle)
        (gapped,) = named(result, "partitions")
        assert "partition 0 alone of 2 has new tuples, with a gap of" in gapped.what
        assert tomllib.loads(result.toml()) == {"partitioner": {"max_skew": "6h"}}
        assert named(look(sample(*rows), partitioner=idle | {"max_skew": "6h"}), "partitions") == []
    for rows in ([gap, orders(at=NOW)], [gap], [orders(), []]):
        assert named(look(sample(*rows), partitioner=idle), "partitions") == []


def test_csv_of_another_delimiter_is_told_by_its_fields() -> None:
    rows = [f"u{number};{NOW + number};{number}.5".encode() for number in HUNDRED]
    csv = {"format": "csv", "columns": ["user", "at", "amount"]}
    result = look(sample(rows), input=csv)
    assert "another number of fields than the 3 of input.columns, mostly 1" in result.problems[0].what
    assert tomllib.loads(result.toml()) == {"input": {"delimiter": ";"}}
    assert look(sample(rows), input=csv | {"delimiter": ";"}).findings[0].name == "order"
    assert tomllib.loads(look(sample(rows)).toml())["input"]["columns"] == ["c0", "c1", "c2"]


def test_a_partition_without_records_holds_back_all_windows() -> None:
    result = look(sample(orders(), [], []))
    (partitions,) = named(result, "partitions")
    assert partitions.what.startswith("partitions 1-2 are empty: no window closes until each has a record")
    assert tomllib.loads(result.toml()) == {"partitioner": {"idle_timeout": "30s"}}
    assert named(look(sample(orders(), []), partitioner={"idle_timeout": "5s"}), "partitions") == []
    ended = sample(orders(), [], ended=True)
    assert named(look(ended), "partitions") == []


def test_a_partition_that_ends_long_before_the_others_is_said() -> None:
    early = [order(number, at=NOW - 3 * 3_600_000) for number in HUNDRED]
    (behind,) = named(look(sample(orders(), early)), "partitions")
    assert behind.what.startswith("partition 1 of 2 end")


def test_one_wrong_clock_is_told_from_disorder() -> None:
    rows = orders()
    rows[20]["at"] += 400 * 86_400_000
    off = {"max_ahead_of_clock": "off"}
    result = look(sample(rows, orders()), query=off)
    (wild,) = named(result, "time")
    assert wild.what.startswith("1 of 200 tuples lie more than 7d ahead of those around them")
    assert tomllib.loads(result.toml()) == {"query": {"max_jump": "7d"}}
    last = orders()
    last[-1]["at"] += 400 * 86_400_000
    assert (
        "lie in the future, the furthest at 2028-02-19"
        in named(look(sample(last), query=off), "time")[0].what
    )
    result = look(sample(rows, orders()))
    (ahead,) = named(result, "time")
    assert ahead.what.startswith(
        "1 of 200 tuples lie more than 1h ahead of the clock, the furthest at 2028-02-19"
    )
    assert (ahead.status, result.proposal) == ("warning", {})
    assert [finding.status for finding in named(result, "order")] == ["ok"], (
        "it moves no time, so nothing is late"
    )


def test_numbered_tuples_are_from_1970_and_no_mistake() -> None:
    result = look(sample([order(number, at=number) for number in HUNDRED]))
    assert (result.problems, result.proposal) == ([], {})


def test_types_of_columns_that_are_no_longer_read_go_with_them() -> None:
    result = look(sample(orders(user=7)), query={"key": "usr", "types": {"usr": "string"}})
    assert tomllib.loads(result.toml()) == {"query": {"key": "user", "types": {"user": "int64"}}}


def test_a_column_that_is_the_key_and_aggregated_keeps_its_type() -> None:
    query = {"key": "n", "types": {"n": "int64"}, "aggregates": {"s": "sum(n)"}, "time_unit": "s"}
    result = look(sample([{"n": number % 7, "at": NOW + number} for number in HUNDRED]), query=query)
    assert tomllib.loads(result.toml()) == {"query": {"time_unit": "ms"}}
    likely = look(sample([{"amount": 1.5, "at": NOW}]), query={"key": "amont"})
    assert "name a column that the records have" in likely.problems[0].do


def test_the_hottest_key_is_named_with_the_fair_share_of_a_worker() -> None:
    (keys,) = named(look(sample(orders(user="всё"))), "keys")
    assert keys.what == "1 keys; the hottest, 'всё', has 100 % of the tuples, a worker's fair share is 12.5 %"
    assert "evenflow advise" in keys.do


def test_records_of_which_no_column_is_read_may_be_anything() -> None:
    query = {"key": "@key", "time": "@timestamp", "aggregates": {"n": "count"}}
    result = look(sample([b"\0\1\2"] * 9, keys=[b"k"] * 9), query=query)
    assert (result.problems, result.facts.readable) == ([], 9)


@pytest.mark.parametrize("digits", [20, 310, 5_000])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_one_time_of_many_digits_is_one_rejected_record(form: str, digits: int) -> None:
    huge = b"9" * digits
    rows = [json.dumps(row).encode() for row in orders()] + [b'{"user":"u","amount":1,"at":%s}' % huge]
    parts: dict[str, Any] = {}
    if form == "csv":
        rows = [b"u,%d,1" % (NOW + number) for number in HUNDRED] + [b"u,%s,1" % huge]
        parts = {"input": {"format": "csv", "columns": ["user", "at", "amount"]}}
    result = look(sample(rows), **parts)
    assert (result.facts.rejected, result.problems) == (1, [])


def test_reasons_are_told_apart_by_the_columns_that_they_name() -> None:
    query = {"aggregates": {"a": "sum(c1)", "b": "sum(c2)"}}
    bad = [*orders(c1="x", c2=1), *orders(c1=1, c2="y")]
    assert [group.count for group in look(sample(bad), query=query).facts.unreadable] == [100, 100]


@pytest.mark.parametrize("depth", [3, 400, 900, 950, 980])
def test_a_deeply_nested_value_is_shown_shortened(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    result = look(sample([b'{"user":%s,"amount":1,"at":%d}' % (deep, NOW)] * 3))
    assert result.problems


def test_what_becomes_of_records_that_are_taken_apart_is_told() -> None:
    result = look(
        sample(orders(tags=["a", "b", None]) + orders(tags=[])), query={"explode": "tags", "key": "user"}
    )
    (told,) = named(result, "explode")
    assert (told.status, told.what) == (
        "ok",
        "explode = 'tags' makes 300 tuples of 200 records; 100 of 200 become none",
    )
    empty = look(sample(orders(tags=None)), query={"explode": "tags"})
    assert [one.status for one in named(empty, "explode")] == ["warning"]
    text = look(sample(orders(tags="a b")), query={"explode": "tags"})
    assert "holds text where a list is needed" in text.problems[0].what
    words = look(sample(orders(tags="a b")), query={"explode": "words(tags)", "key": "tags"})
    assert (words.problems, words.facts.keys) == ([], 2)


def test_the_types_of_a_key_of_two_and_of_expressions_stay_when_something_else_is_mended() -> None:
    query = {
        "key": ["user", "n"],
        "time": "when",
        "where": "m > 1",
        "types": {"n": "int64", "m": "int64"},
    }
    mended = look(sample(orders(n=1, m=2)), query=query)
    assert applied(mended.settings, mended.proposal).query.types == {"n": "int64", "m": "int64"}


def test_types_that_only_views_read_stay_when_something_else_is_mended() -> None:
    query = {
        "key": "usr",
        "types": {"price": "decimal(2)", "amount": "int64"},
        "views": {"money": {"aggregates": {"total": "sum(price)"}}},
    }
    result = look(sample(orders(amount=1, price=1.5)), query=query)
    assert applied(result.settings, result.proposal).query.types == query["types"]


@pytest.mark.parametrize(
    ("value", "kind"), [(True, "bool"), ("2026-01-31", "date"), ("red", "string"), (7, "int64")]
)
def test_a_key_of_another_type_is_mended_by_that_type(value: Any, kind: str) -> None:
    declared = "int64" if kind != "int64" else "string"
    result = look(sample(orders(tag=value)), query={"key": "tag", "types": {"tag": declared}})
    assert applied(result.settings, result.proposal).query.types == {"tag": kind}


@pytest.mark.parametrize(("value", "kind"), [(True, "bool"), ("2026-01-31", "date"), ("red", "string")])
@pytest.mark.parametrize("function", ["first", "max"])
def test_an_aggregate_of_what_is_no_number_is_mended_by_its_type(
    value: Any, kind: str, function: str
) -> None:
    result = look(sample(orders(tag=value)), query={"aggregates": {"a": f"{function}(tag)"}})
    assert applied(result.settings, result.proposal).query.types == {"tag": kind}
    summed = look(sample(orders(tag=value)), query={"aggregates": {"a": "sum(tag)"}})
    assert summed.proposal == {}
    assert "write a number" in summed.problems[0].do


@pytest.mark.parametrize("value", [True, "2026-01-31", "red", 7, 1.5])
def test_count_distinct_of_any_value_has_nothing_to_mend(value: Any) -> None:
    result = look(sample(orders(tag=value)), query={"aggregates": {"a": "count_distinct(tag)"}})
    assert (result.problems, result.proposal) == ([], {})


def test_objects_under_count_distinct_are_a_problem_that_no_type_mends() -> None:
    result = look(sample(orders(tag=["a"])), query={"aggregates": {"a": "count_distinct(tag)"}})
    assert result.proposal == {}
    assert "count_distinct(tag) needs text, a number, true or false" in result.problems[0].what
    assert "name another column" in result.problems[0].do


def test_text_that_first_reads_beside_count_distinct_is_mended_by_the_line_that_is_said() -> None:
    both = {"aggregates": {"a": "count_distinct(buyer.id)", "n": "first(buyer.id)"}}
    result = look(sample(orders(buyer={"id": "b7"})), query=both)
    assert 'query.types = { "buyer.id" = "string" }' in result.problems[0].do
    assert applied(result.settings, result.proposal).query.types == {"buyer.id": "string"}


def test_whether_a_column_is_null_and_how_often_makes_no_number_of_what_is_counted() -> None:
    asked = {"aggregates": {"a": "count_distinct(tag)", "n": "count(tag)"}, "where": "tag IS NOT NULL"}
    assert look(sample(orders(tag="red")), query=asked).problems == []


def test_texts_among_numbers_are_mended_by_null_or_a_decimal_type_and_not_by_where() -> None:
    rows = [order(n, amount="N/A" if n % 20 == 0 else n + 0.25) for n in HUNDRED]
    (finding,) = named(look(sample(rows)), "sum(amount)")
    assert (
        finding.do
        == "such records are rejected: write a number or null there, or name another column. query.where is"
        " asked only of records that can be read, so it drops none of these. To read the numbers exactly:"
        ' query.types = { amount = "decimal(2)" }'
    )
    for types in ({}, {"amount": "decimal(2)"}):
        (finding,) = named(look(sample(orders(amount="12.50")), query={"types": types}), "sum(amount)")
        assert finding.do.startswith(
            "such records are rejected: write a number or null there, a number without quotes, or name"
            " another column. "
        )
    with pytest.raises(
        ValueError, match=r"mixes a floating-point number and text\. A record that holds text"
    ):
        settings(query={"where": "amount <> 'N/A'"})


def test_a_query_that_began_with_numbers_is_looked_at_by_its_rule() -> None:
    asked = settings(query={"aggregates": {"a": "count_distinct(tag)"}}).with_any_columns(())
    result = check_sample(asked, sample(orders(tag="red")), now=NOW)
    assert applied(result.settings, result.proposal).query.types == {"tag": "string"}


def test_a_misspelt_list_takes_what_lies_within_it_along() -> None:
    query = {
        "explode": "itms",
        "key": ["itms.sku", "user"],
        "aggregates": {"s": "sum(itms.n)", "c": "count"},
        "types": {"itms.n": "int64"},
    }
    result = look(sample(orders(items=[{"sku": "a", "n": 1}])), query=query)
    mended = applied(result.settings, result.proposal).query
    assert (mended.explode, mended.key_columns) == ("items", ("items.sku", "user"))
    assert (str(mended.aggregates["s"]), mended.types) == ("sum(items.n)", {"items.n": "int64"})


def test_an_empty_sample_says_so() -> None:
    result = look(sample([], []))
    assert (result.summary(), result.findings) == ("sample of orders: no tuples yet", ())
    assert settings().query.name == "q"


def test_fields_within_another_are_found_and_proposed() -> None:
    result = look(sample([{"payload": order(number)} for number in HUNDRED]))
    assert result.problems
    mended = applied(result.settings, result.proposal)
    assert (mended.query.key, mended.query.time) == ("payload.user", "payload.at")
    assert str(mended.query.aggregates["s"]) == "sum(payload.amount)"
    assert (
        check_sample(mended, sample([{"payload": order(number)} for number in HUNDRED]), now=NOW).problems
        == []
    )


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("user.id", {"user": {"id": "a"}}, "string"),
        ('"user.id"', {"user.id": "a"}, "string"),
        ("a b", {"a b": 7}, "int64"),
        ("paid", {"paid": True}, "bool"),
        ("day", {"day": "2026-01-31"}, "date"),
    ],
)
def test_records_without_a_key_get_one_by_the_lines_that_are_said(
    path: str, value: dict[str, Any], kind: str
) -> None:
    rows = [{"at": order(number)["at"], **(value if number % 4 else {})} for number in HUNDRED]
    query = {"key": path, "aggregates": {"n": "count"}, "types": {path: kind}}
    result = look(sample(rows), query=query)
    (key,) = named(result, "the key")
    assert key.what == f"column {path!r} (the key) is missing or null in 25 of 100 records (25 %)"
    columns, _, name = key.do.partition("query.columns = ")[2].partition(" and query.key = ")
    lines = tomllib.loads(f"[query]\ncolumns = {columns}\nkey = {name}\n")["query"]
    mended = look(sample(rows), query=query | lines)
    assert (result.facts.rejected, mended.facts.rejected, mended.facts.keys) == (25, 0, 2)


def test_a_record_that_where_drops_needs_no_key() -> None:
    rows = [order(number, **({} if number % 4 else {"user": None})) for number in HUNDRED]
    rows[0]["amount"], rows[4]["amount"] = 500, 501
    result = look(sample(rows), query={"where": "user IS NOT NULL OR amount = 500"})
    assert (result.facts.rejected, result.facts.filtered, result.facts.tuples) == (1, 24, 75)
    (key,) = named(result, "the key")
    assert key.do.startswith("such records are rejected, unless query.where drops them. To keep them")


def test_times_that_are_equal_everywhere_are_doubted() -> None:
    result = look(sample(orders(at=NOW - 5_000), orders(at=NOW - 5_000)))
    (doubt,) = [finding for finding in named(result, "time") if finding.status == "warning"]
    assert "all 200 tuples of the sample have the same event time, 2027-01-15 07:59:55 UTC" in doubt.what
    assert "query.time = 'at'" in doubt.do
    assert not [one for one in named(look(sample([order(1)])), "time") if one.status == "warning"]


def test_a_few_texts_among_decimals_keep_the_type_that_fits_all_others() -> None:
    rows = orders()
    rows[3]["amount"] = "N/A"
    result = look(sample(rows), query={"types": {"amount": "decimal(2)"}})
    (amount,) = named(result, "sum(amount)")
    assert amount.what.startswith("column 'amount' holds text, e.g. 'N/A', in 1 of 100 records")
    assert (
        amount.do
        == "such records are rejected: write a number or null there. The type 'decimal(2)' fits all others"
    )
    assert "types" not in result.proposal.get("query", {})


@pytest.mark.parametrize("path", ["user.id", '"user.id"', "a b", "ключ"])
def test_what_is_printed_to_be_pasted_is_toml_that_the_settings_take(path: str) -> None:
    fields = {"user.id": {"user": {"id": 7}}, '"user.id"': {"user.id": 7}}.get(path, {path: 7})
    rows = [{"at": order(number)["at"], **fields} for number in HUNDRED]
    result = look(sample(rows), query={"key": path, "aggregates": {"n": "count"}})
    (key,) = named(result, "the key")
    said = key.do.removeprefix("say so: query.")
    types = tomllib.loads(f"[query]\n{said}")["query"]["types"]
    assert types == {path: "int64"} == tomllib.loads(result.toml())["query"]["types"]
    assert (
        named(
            look(sample(rows), query={"key": path, "aggregates": {"n": "count"}, "types": types}), "the key"
        )
        == []
    )
