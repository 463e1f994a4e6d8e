"""Names that packages offer stand in the lists of every kind, with the package from which they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.aggregates.page import page
from evenflow.aggregates.registry import aggregate
from evenflow.elasticity.registry import options_type
from evenflow.errors import ConfigError
from evenflow.partitioners import describe
from evenflow.queries import named
from evenflow.sources.datasets import open_source
from spark_consumers.sinks import sink_named
from tests.outside import forgotten, module, package

OWN = '''
from evenflow.aggregates.own import PlainAggregate
from evenflow.elasticity import Decision, Policy
from evenflow.partitioners import PlainPartitioner
from evenflow.queries import BuiltInQuery
from spark_consumers.sinks import RowsSink
class Mine(PlainPartitioner):
    """My partitioner."""
    def route_one(self, key, time_ms):
        return key % self.workers
class Eager(Policy):
    """My policy."""
    def _decide(self, seen):
        return Decision(p=seen.p, r=seen.r, reason="as it is", cause="stable")
class Longest(PlainAggregate):
    """My aggregate."""
    result, over = "int64", ("string", "bool")
    def init(self):
        return 0
    def add(self, state, value):
        return max(state, len(value))
    def merge(self, a, b):
        return max(a, b)
    def finish(self, state):
        return state
def letters(rest, options):
    """My source."""
QUERY = BuiltInQuery(name="letters", what="My query.", source="own:letters", data="some",
    fields={"key": "word", "window": "60s", "aggregates": {"n": "count"}})
class Nowhere(RowsSink):
    """My sink."""
    name, repeats = "mine", True
    def write(self, rows, batch, settings):
        pass
SINK = Nowhere()
'''
KINDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "partitioners": ("own:Mine", describe),
    "policies": ("own:Eager", options_type),
    "aggregates": ("own:Longest", aggregate),
    "sources": ("own:letters", open_source),
    "queries": ("own:QUERY", named),
    "sinks": ("own:SINK", sink_named),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package for each kind, `their-<kind>`, which offers `mine` and `broken`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module(tmp_path, "own", OWN)
    for kind, (place, _) in KINDS.items():
        package(tmp_path, f"their-{kind}", f"evenflow.{kind}", mine=place, broken="nowhere:Thing")
    with forgotten(tmp_path):
        yield


def shown(kind: str, *words: str) -> list[str]:
    done = CliRunner().invoke(app, [kind, *words])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@EVERY
def test_a_list_says_from_which_package_a_name_comes(installed: None, kind: str) -> None:
    what = {"queries": "query", "policies": "policy"}.get(kind, kind.removesuffix("s"))
    lines = [line for line in shown(kind) if line.startswith(("mine ", "broken "))]
    assert f"(their-{kind}) My {what}." in lines[1]
    assert f"(their-{kind}) It cannot be used: the {what} 'broken' is not there" in lines[0]
    of_name = {entry["name"]: entry for entry in map(json.loads, shown(kind, "--json"))}
    assert of_name.pop("mine")["package"] == of_name.pop("broken")["package"] == f"their-{kind}"
    assert {entry["package"] for entry in of_name.values()} == {None}


@EVERY
def test_an_unknown_name_is_answered_with_the_names_of_packages_too(installed: None, kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KINDS[kind][1]("nothing-of-this-name")
    assert f"broken (their-{kind}), mine (their-{kind})" in str(caught.value.hint)


def test_the_page_of_aggregates_has_those_of_packages(installed: None) -> None:
    assert "| over | `string`, `bool` |\n| computes | (their-aggregates) My aggregate. |" in page()
