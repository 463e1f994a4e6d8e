"""Settings of views: a query of its own for each, whose input, frames and lateness are its query's."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError
from evenflow.settings import Query, Settings, load_settings, save_settings
from evenflow.settings.views import RESERVED_VIEW_NAMES, queries, view
from topics.admin import ROLES, pipeline_topics, topics_of_views
from topics.state import TopicSpec
from workbench.strimzi.rights import rights

HOURLY = {"aggregates": {"hi": "max(x)"}, "window": "1h", "slide": "20s"}


def settings_with(views: dict[str, Any], **more: Any) -> Settings:
    query = {"name": "q", "window": "60s", "slide": "10s", "aggregates": {"total": "sum(x)"}, "views": views}
    results = more.pop("results", {})
    return load_settings(query=query | more, results=results).with_input_partitions(4)


def test_a_view_is_a_query_of_its_own_that_reads_what_its_query_reads() -> None:
    settings = settings_with({"hourly": HOURLY})
    seen = view(settings, "hourly")
    assert (seen.query.name, seen.query.window, seen.query.slide_ms) == ("q.hourly", 3_600_000, 20_000)
    assert (seen.query.slides_per_pane, seen.query.view_name) == (2, "hourly")
    assert (seen.origin, seen.query.origin) == (settings, settings.query)
    for role in ROLES:
        own = role in ("partials", "results", "telemetry")
        assert seen.topic(role) == (f"q.hourly.{role}" if own else settings.topic(role))
    assert seen.data_plane_group == settings.data_plane_group
    assert seen.query_checkpoint == f"{settings.query_checkpoint}.hourly"
    assert {one.query.name for one in queries(settings)} == {"q", "q.hourly"}
    assert pickle.loads(pickle.dumps(seen)).topic("routed") == "q.routed"


def test_what_a_view_leaves_out_is_its_querys() -> None:
    seen = view(settings_with({"v": {"aggregates": {"n": "count"}}}, allowed_lateness="3s"), "v").query
    assert (seen.window, seen.slide_ms, seen.allowed_lateness, seen.slides_per_pane) == (
        60_000,
        10_000,
        3_000,
        1,
    )


def test_frames_carry_the_columns_of_the_query_and_of_all_its_views() -> None:
    views = {"a": {"aggregates": {"m": "min(y)"}}, "b": {"aggregates": {"f": "first(z)"}}}
    settings = settings_with(views)
    schemas = [AggregatePlan.of(one.query).frame_schema for one in queries(settings)]
    assert schemas[0].names == ["pane", "key", "time", "v:x", "v:y", "v:z"]
    assert schemas == schemas[:1] * 3
    assert settings.needed_columns == ["key", "time", "x", "y", "z"]


def test_a_view_that_needs_nothing_more_in_the_frames_is_no_other_query() -> None:
    alone = settings_with({})
    assert settings_with({"hourly": HOURLY}).fingerprint == alone.fingerprint
    assert alone.changes_since(settings_with({"hourly": HOURLY}).identity()) == []


@pytest.mark.parametrize(
    ("aggregate", "carried"), [("max(y)", {"y": "float64"}), ("last(x)", {"@time": "int64"})]
)
def test_a_view_that_needs_more_in_the_frames_makes_another_query_and_it_is_said(
    aggregate: str, carried: dict[str, str]
) -> None:
    alone, more = settings_with({}), settings_with({"v": {"aggregates": {"a": aggregate}}})
    assert more.fingerprint != alone.fingerprint
    assert more.query.canonical()["carried_for_views"] == carried
    assert "carried_for_views" in more.changes_since(alone.identity())[0]


def test_each_view_has_a_fingerprint_that_its_query_is_part_of() -> None:
    views = {"a": HOURLY, "b": HOURLY, "c": HOURLY | {"window": "40s"}}
    seen = [one.fingerprint for one in queries(settings_with(views))]
    assert len(set(seen)) == 4
    others = [one.fingerprint for one in queries(settings_with(views, allowed_lateness="1s"))]
    assert not set(seen) & set(others)


def test_a_view_may_group_by_a_column_of_its_own_which_frames_then_carry_as_text() -> None:
    grouped = {"v": {"aggregates": {"hi": "max(x)"}, "key": "shop"}}
    settings = settings_with(grouped)
    seen = view(settings, "v").query
    assert AggregatePlan.of(settings.query).frame_schema.names == ["pane", "key", "v:shop", "v:x"]
    assert AggregatePlan.of(seen).frame_schema == AggregatePlan.of(settings.query).frame_schema
    assert settings.query.canonical()["carried_for_views"] == {"shop": "string"}
    assert settings.needed_columns == ["key", "shop", "time", "x"]
    assert (seen.own_key, seen.key_columns, seen.group_columns) == ("shop", ("key",), ("shop",))
    assert (seen.key_kind, seen.result_keys, seen.key_name) == ("string", ("key",), "shop")
    assert settings.query.own_key is None


def test_the_key_of_a_view_is_part_of_its_identity_and_may_make_another_column_of_what_frames_carry() -> None:
    """A number that nobody declared is a text once a view groups by it, and then the frames are others."""
    grouped = {"v": HOURLY | {"key": "x"}}
    more = {"aggregates": {"n": "count_distinct(x)"}}
    without = settings_with({"v": HOURLY}, types={"x": "int64"})
    there = settings_with(grouped, types={"x": "int64"})
    assert there.fingerprint == without.fingerprint
    assert len({view(one, "v").fingerprint for one in (without, there)}) == 2
    assert settings_with({"v": {"aggregates": {"n": "count"}, "key": "x"}}, **more).query.canonical()[
        "carried_for_views"
    ] == {"x": "string"}


@pytest.mark.parametrize(
    ("views", "problem"),
    [
        ({"v": HOURLY | {"key": "key"}}, "views.v: key = 'key' is the key of the query already"),
        ({"v": HOURLY | {"key": "@key"}}, "views.v: key = '@key' is no column that frames carry"),
        (
            {"v": {"key": "p", "aggregates": {"n": "count"}}},
            "views.v: key = 'p' cannot be decimal.2.: a view groups",
        ),
        (
            {"v": {"key": "s", "aggregates": {"s": "last(s)"}}},
            (
                "key = 's' is a text of up to query.max_value_bytes = 1,000,000 bytes, so a result in JSON"
                " could have"
            ),
        ),
        (
            {"v": HOURLY | {"slide": "15s"}},
            "views.v: slide .15s. must be a multiple of the query's slide .10s.",
        ),
        ({"v": HOURLY | {"window": "50s"}}, "views.v: window .50s. must be a multiple of the slide .20s."),
        (
            {"v": {"aggregates": {"n": "cuont"}}},
            "views.v: there is no aggregate 'cuont'; did you mean 'count'",
        ),
        ({"v": {"aggregates": {}}}, "views.v.aggregates: a query needs at least one aggregate"),
        ({"v": {"aggregates": {"key": "count"}}}, "key cannot name an aggregate"),
        ({"v": {"window": "60s"}}, "views.v.aggregates: Field required"),
        ({"v": HOURLY | {"where": "x > 1"}}, "views.v.where: there is no such setting"),
        ({"Big": HOURLY}, "'Big' cannot name a view: lower case letters"),
        ({"a.b": HOURLY}, "'a.b' cannot name a view"),
        *(({name: HOURLY}, "the query has a topic or a group of that name") for name in RESERVED_VIEW_NAMES),
    ],
)
def test_views_that_cannot_be_are_refused(views: dict[str, Any], problem: str) -> None:
    keys = {seen.get("key") for seen in views.values()}
    with pytest.raises(ConfigError, match=problem):
        settings_with(views, types={"p": "decimal(2)"} if "p" in keys else {})


def test_every_role_of_a_topic_is_reserved() -> None:
    assert set(ROLES) <= RESERVED_VIEW_NAMES


def test_what_a_view_emits_is_part_of_its_identity_and_all_is_what_it_was_before() -> None:
    """Else a restart would go on with the state of another mode, and take off what was never given out."""
    modes = {
        mode: view(settings_with({"v": HOURLY | {"emit": mode}}), "v")
        for mode in ("all", "changes", "top(3, hi)")
    }
    assert len({one.fingerprint for one in modes.values()}) == 3
    assert modes["all"].fingerprint == view(settings_with({"v": HOURLY}), "v").fingerprint
    assert "view.emit" in modes["changes"].changes_since(modes["all"].identity())[0]
    assert "emit" not in modes["all"].identity()["view"]


def test_results_of_views_stand_beside_those_of_the_query() -> None:
    settings = settings_with({"hourly": HOURLY}, results={"topic": "out"})
    assert [one.topic("results") for one in queries(settings)] == ["out", "out.hourly"]
    settings = settings_with({"hourly": HOURLY}, results={"sink": "parquet", "path": "s3a://bucket/out/"})
    assert view(settings, "hourly").results.path == "s3a://bucket/out.hourly"


@pytest.mark.parametrize("path", ["s3a://bucket", "s3a://bucket/", "/", ".", "a/.."])
def test_a_folder_of_results_without_a_name_cannot_have_one_beside_it(path: str) -> None:
    assert settings_with({}, results={"sink": "parquet", "path": path}).results.path == path
    with pytest.raises(ConfigError, match="has no name of its own"):
        settings_with({"hourly": HOURLY}, results={"sink": "parquet", "path": path})


def test_two_places_that_are_one_topic_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"would be one topic, q\.hourly\.partials"):
        settings_with({"hourly": HOURLY}, results={"topic": "q.hourly.partials"})


def test_settings_with_views_survive_a_file(tmp_path: Path) -> None:
    settings = settings_with({"hourly": HOURLY})
    save_settings(settings, tmp_path / "s.json")
    again = load_settings(tmp_path / "s.json")
    assert [one.fingerprint for one in queries(again)] == [one.fingerprint for one in queries(settings)]


def test_a_view_knows_its_input_partitions_as_its_query_does() -> None:
    loaded = load_settings(query={"name": "q", "window": "60s", "slide": "10s", "views": {"v": HOURLY}})
    seen = view(loaded, "v").with_input_partitions(3)
    assert (seen.input_partitions, seen.origin.input_partitions) == (3, 3)


def test_a_query_without_views_says_nothing_of_them() -> None:
    assert "carried_for_views" not in Query().canonical()
    assert "views" not in Query().canonical()


def test_topics_and_rights_hold_for_views_too() -> None:
    settings = settings_with({"hourly": HOURLY})
    made: list[TopicSpec] = topics_of_views(settings)
    assert {spec.name for spec in made} == {
        f"q.hourly.{role}" for role in ("partials", "results", "telemetry")
    }
    assert not {spec.name for spec in made} & {spec.name for spec in pipeline_topics(settings).values()}
    for part, role in (("combiner", "partials"), ("reducer", "results"), ("reducer", "telemetry")):
        writes = {right.name for right in rights(settings, part) if "Write" in right.operations}
        assert {f"q.{role}", f"q.hourly.{role}"} <= writes
