"""What `evenflow query check` says a query keeps is what the same tuples make when they are counted one by
one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError
from tests.examples import examples
from tests.unit.workbench.assist.sample_check.samples import NOW, order, sample, settings
from topics.state import TopicState
from workbench.assist.query_check import Check, check_query, kept_of, of_sample

SLIDING = {"window": "3s", "slide": "1s"}


def checked(rows: list[Any], *, records: int | None = None, **query: Any) -> Check:
    records = len(rows) if records is None else records
    state = TopicState("orders", "t", 1, {0: 0}, {0: records}, {})
    return of_sample(settings(query=query), state, sample(rows), now=NOW)


@examples(25)
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), min_size=1, max_size=60))
def test_keys_of_panes_and_of_the_fullest_window_are_counted_right(rows: list[tuple[int, int]]) -> None:
    records = [{"user": f"u{user}", "amount": 1, "at": NOW + 500 * half} for user, half in rows]
    kept = kept_of(settings(query=SLIDING), sample(records), whole=True)
    assert kept is not None
    panes: dict[int, set[int]] = {}
    for user, half in rows:
        panes.setdefault((NOW + 500 * half) // 1000, set()).add(user)
    assert kept.panes == len(panes)
    assert kept.pane_keys[1] == max(map(len, panes.values()))
    entries = {first: sum(len(panes.get(first + pane, ())) for pane in range(3)) for first in panes}
    fullest = min(first for first in panes if entries[first] == max(entries.values()))
    users = set[int]().union(*(panes.get(fullest + pane, set()) for pane in range(3)))
    assert kept.window_keys == len(users)
    tuples = Counter((NOW + 500 * half) // 1000 for _, half in rows)
    assert kept.window_tuples == sum(tuples[fullest + pane] for pane in range(3))
    assert kept.entry_bytes > 0
    assert kept.pairs == sum(map(len, panes.values()))


def test_a_view_with_a_longer_slide_joins_panes_of_its_query() -> None:
    rows = [order(number) | {"at": NOW + 250 * number} for number in range(240)]
    views = {"slow": {"window": "20s", "slide": "10s", "aggregates": {"n": "count"}}}
    kept = kept_of(settings(query={"window": "2s", "slide": "1s", "views": views}), sample(rows), whole=True)
    assert kept is not None
    slow = kept.views["slow"]
    assert (slow.tuples, slow.window_tuples) == (240, 80)
    said = checked(rows, window="2s", slide="1s", views=views).sections
    assert dict(said["state"])["fullest window"] == "8 keys of 8 tuples, of all records"
    assert dict(said["view slow"])["fullest window"] == "10 keys of 80 tuples, of all records"
    assert slow.panes in (6, 7)
    assert kept.window_tuples == 8


def test_rows_of_a_tuple_are_estimated_for_long_sliding_windows() -> None:
    rows = [order(number) | {"at": NOW + 1000 * number} for number in range(100)]
    long = dict(checked(rows, window="60s", slide="1s").sections["results"])
    assert (
        long["rows for each tuple"]
        == "at most 60.0: 100 tuples in 100 pairs of pane and key, and a pane is in 60 windows. A longer"
        " slide, or emit = 'changes', writes fewer"
    )
    assert "rows for each tuple" not in dict(checked(rows, window="60s").sections["results"])
    few = dict(checked(rows, window="2s", slide="1s").sections["results"])
    assert few["rows for each tuple"].startswith("at most 2.0: ")
    assert "longer slide" not in few["rows for each tuple"]


def test_a_partitioner_that_cannot_be_used_is_refused_as_the_service_refuses_it() -> None:
    with pytest.raises(ConfigError, match="unknown partitioner 'evenflaw'; did you mean 'evenflow'"):
        check_query(settings(partitioner={"name": "evenflaw"}), most=10)
    with pytest.raises(ConfigError, match="unknown option 'epsilo'"):
        check_query(settings(partitioner={"name": "d-choices", "options": {"epsilo": 1}}), most=10)


def test_an_aggregate_that_verify_cannot_recompute_is_a_warning() -> None:
    own = "tests.unit.aggregates.own_aggregates_for_tests"
    rows = [order(number) for number in range(100)]
    result = checked(rows, aggregates={"bare": f"{own}:NoOracle(amount)", "sum": f"{own}:TableSum(amount)"})
    assert [finding.what for finding in result.findings if finding.name == "verify"] == [
        f"bare = {own}:NoOracle(amount) has no oracle, so `evenflow verify` refuses this query"
    ]
    compared = dict(result.sections["verify compares"])
    assert "refuses this query" in compared["bare"]
    assert compared["sum"].endswith("as near to its `oracle` as its `tolerance` says")


def test_only_what_the_filter_keeps_is_kept() -> None:
    result = checked([order(number) for number in range(100)], where="amount < 5", **SLIDING)
    assert result.state_sizes is not None
    assert result.state_sizes.tuples == 20
    assert dict(result.sections["tuples"])["filtered"] == "80 of 100"
    assert not result.problems


def test_a_filter_that_keeps_nothing_is_a_warning() -> None:
    result = checked([order(number) for number in range(100)], where="amount < 0")
    assert result.state_sizes is None
    assert [finding.status for finding in result.findings if finding.name == "filter"] == ["warning"]


def test_the_answer_says_types_roles_state_and_bounds() -> None:
    result = checked(
        [order(number) for number in range(100)],
        records=1_000,
        columns={"twice": "amount * 2"},
        aggregates={
            "n": "count",
            "t": "sum(twice)",
            "q": "quantile(amount, 0.5)",
            "d": "count_distinct(user_name)",
        },
        **SLIDING,
    )
    columns = dict(result.sections["columns"])
    assert columns["user_name"] == "read as any value: d = count_distinct(user_name); found: in no record"
    assert columns["user"] == "read as string: key; found: text in 100"
    assert columns["at"] == "read as ms: event time; found: whole number in 100"
    assert columns["twice"] == "float64 = amount * 2: t = sum(twice)"
    state = dict(result.sections["state"])
    assert "sum, quantile, count_distinct cannot be taken back" in state["kept"]
    assert state["keys of a pane"].endswith("of the sample")
    assert dict(result.sections["windows"])["window"] == "3s sliding by 1s: a tuple is in 3 windows"
    assert dict(result.sections["verify compares"])["n"] == "count: exact"
    assert result.as_json()["kept"]["tuples"] == 100


def test_records_that_are_taken_apart_are_told_in_tuples() -> None:
    items = [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]
    rows = [order(number, items=items if number % 4 else []) for number in range(100)]
    query = {"explode": "items", "key": "items.sku", "aggregates": {"n": "sum(items.n)"}}
    result = checked(rows, types={"items.n": "int64"}, **query)
    assert not result.problems
    tuples = dict(result.sections["tuples"])
    assert (tuples["explode"], tuples["tuples"], tuples["filtered"]) == (
        "items",
        "150 of 75 records",
        "25 of 100",
    )
    assert tuples["keys"] == "2, the hottest has 50 % of the tuples"
    assert (
        dict(result.sections["columns"])["items.n"]
        == "read as int64: n = sum(items.n); found: whole number in 150"
    )
    assert result.state_sizes is not None
    assert result.state_sizes.tuples == 150


def test_without_a_broker_it_says_what_the_settings_tell_and_that_nobody_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVENFLOW_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("EVENFLOW_KAFKA__REQUEST_TIMEOUT", "1s")
    result = CliRunner().invoke(app, ["query", "check"])
    assert result.exit_code == 1
    assert "verify compares" in result.output
    assert "no broker answers" in result.output


@pytest.mark.parametrize(
    ("call", "bound"),
    [
        ("sum(amount)", "1e-9 of the sum of their sizes"),
        ("sum(n)", "exact"),
        ("mean(n)", "2^-51 of its size"),
        ("quantile(amount, 0.5)", "1/256 (0.4 %) of its size"),
        ("quantile(amount, 0.5, exact)", "exact"),
        ("count_distinct(n)", "standard error 1.6 %; verify allows six of them and 4 more: 10 % + 4"),
        ("count_distinct(n, exact)", "exact"),
        ("top_k(n, 3)", "exact"),
        (
            "top_k(n, 3, 100)",
            "a value occurs at most `count` and at least `count - error` times, by 100 counters",
        ),
    ],
)
def test_the_bound_is_that_of_the_call(call: str, bound: str) -> None:
    rows = [order(number, n=number) for number in range(10)]
    result = checked(rows, aggregates={"a": call, "c": "count(n)"}, types={"n": "int64"})
    assert dict(result.sections["verify compares"])["a"].endswith(f": {bound}")


def test_views_and_what_comes_out_are_told() -> None:
    result = checked(
        [order(number) for number in range(100)],
        emit="top(3, s)",
        views={
            "long": {"aggregates": {"m": "max(amount)"}, "window": "4s", "slide": "2s", "emit": "changes"}
        },
        **SLIDING,
    )
    assert dict(result.sections["windows"])["emit"] == "of each window top(3, s)"
    long = dict(result.sections["view long"])
    assert long["window"] == "4s sliding by 2s: a tuple is in 2 windows"
    assert long["m"] == "max(amount): exact"
    assert (
        dict(result.sections["verify compares"])["what comes out"]
        == "which rows are the first 3, and their ranks"
    )
    assert "retractions" in long["emit"]
    assert long["emitted"].endswith("has but retractions of the one before")
    assert "a pane of keys alone" in long["kept"]
    assert long["size"].startswith("about ")
    assert result.state_sizes is not None
    keys = result.state_sizes.views["long"].window_keys
    assert (
        long["rows"]
        == f"at most {keys} for the fullest window, and retractions: one for each key that changed"
    )
    assert dict(result.sections["results"])["rows"].startswith("3 for the fullest window: the first of its ")
    assert "long: m = max(amount)" in dict(result.sections["columns"])["amount"]
    assert set(result.as_json()["kept"]["views"]) == {"long"}


def test_the_answer_says_which_share_of_the_sample_has_no_row_in_the_lookup_file(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("name,city\n" + "".join(f"u{number},c{number % 2}\n" for number in range(7)))
    lookup = {"file": file, "key": "user", "file_key": "name", "columns": {"city": "string"}}
    rows = [order(number) for number in range(100)]  # of ten users, of which the file has seven
    for missing, unmatched in (("reject", 30), ("null", 0)):
        query = {"lookup": lookup | {"missing": missing}, "where": "city = 'c0' OR city IS NULL"}
        result = checked(rows, **query)
        assert dict(result.sections["columns"])["city"] == "string of the lookup file: where"
        assert "looked up" in dict(result.sections["columns"])["user"]
        said = dict(result.sections["lookup"])
        assert (said["joined by"], said["without a row"]) == ("user = name of the file", "30 of 100 records")
        assert dict(result.sections["tuples"])["rejected"].startswith(f"0 unreadable, {unmatched} unmatched")
        (finding,) = (finding for finding in result.findings if finding.name == "lookup")
        assert (finding.status, "(30 %)" in finding.what) == ("warning", True)


def test_columns_of_the_lookup_file_are_not_asked_of_the_records_but_its_key_is(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text(
        "user,city,rank\n" + "".join(f"u{number},c{number % 2},{number}\n" for number in range(10))
    )
    query = {
        "lookup": {"file": file, "key": "user", "columns": {"city": "string", "rank": "int64"}},
        "key": ["city", "at"],
        "columns": {"twice": "rank * 2"},
        "where": "twice >= 0",
        "aggregates": {"r": "sum(rank)", "d": "count_distinct(city)"},
    }
    assert not checked([order(number) for number in range(100)], **query, types={"at": "int64"}).problems
    rows = [{"uzer": f"u{number % 10}", "at": order(number)["at"]} for number in range(100)]
    result = checked(rows, **query, types={"at": "int64"})
    (problem,) = (finding for finding in result.findings if finding.name == "the lookup")
    assert (problem.status, "has a column 'user'" in problem.what) == ("problem", True)


def test_a_sample_of_which_no_record_has_a_row_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("user,city\nU0,c\n")
    lookup = {"file": file, "key": "user", "columns": {"city": "string"}, "missing": "null"}
    result = checked([order(number) for number in range(100)], lookup=lookup)
    assert [finding.status for finding in result.findings if finding.name == "lookup"] == ["problem"]


def test_a_summary_is_told_as_a_query_of_the_rows_of_its_parts() -> None:
    views = {"by-size": {"key": "big", "window": "2s", "aggregates": {"n": "count", "who": "max(user)"}}}
    summary = {"of": {"by-size": "who"}, "aggregates": {"most": "max(n)"}, "having": "most > 1"}
    result = checked(
        [order(number) for number in range(100)],
        views=views,
        summaries={"busy": summary},
        columns={"big": "amount > 10"},
        types={"user": "string"},
        **SLIDING,
    )
    told = dict(result.sections["summary busy"])
    assert told["window"].startswith("2s sliding by 1s")
    assert told["most"] == "max(n): exact"
    assert result.state_sizes is not None
    assert list(result.state_sizes.views) == ["by-size"]
    assert any("by-size: key" in line for _, line in result.sections["columns"])
