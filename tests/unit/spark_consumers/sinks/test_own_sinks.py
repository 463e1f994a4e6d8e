"""A sink of one's own is loaded by its name, refused in words, and held to the contract of every sink."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.plugins import first_paragraph
from evenflow.settings import Settings
from evenflow.settings.views import view
from evenflow.spark import results
from spark_consumers.sinks import SINKS, RowsSink, check_sink, sink_named, sink_of
from spark_consumers.sinks.base import Shape, StartFacts
from spark_consumers.sinks.checking import LAWS, settings_for


class Silent(RowsSink):
    """Says nothing about repetitions."""

    name = "silent"

    def write(self, rows: Any, batch: int, settings: Settings) -> None:
        raise AssertionError("no test here writes")


class Replacing(Silent):
    name = "replacing"
    repeats = False


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with sinks that `results.sink` can name."""
    module = ModuleType("own_sinks_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.SINK = Replacing()  # type: ignore[attr-defined]
    module.Replacing = Replacing  # type: ignore[attr-defined]
    module.number = 5  # type: ignore[attr-defined]
    return module


def settings(sink: str, **results: str) -> Settings:
    return Settings(
        query={"name": "q", "key": "k"}, results={"sink": sink} | results, input={"partitions": 1}
    )


def test_a_sink_of_ones_own_is_named_by_its_module(own: ModuleType) -> None:
    assert sink_of(settings("own_sinks_of_a_test:SINK")) is own.SINK


def test_a_sink_of_ones_own_is_named_by_the_entry_point_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: ModuleType
) -> None:
    info = tmp_path / "sinks_of_a_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sinks-of-a-test\nVersion: 1.0\n")
    points = "warehouse_of_a_test = own_sinks_of_a_test:SINK"
    (info / "entry_points.txt").write_text(f"[evenflow.sinks]\n{points}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sink_of(settings("warehouse_of_a_test")) is own.SINK
    with pytest.raises(
        ConfigError, match=r"no sink 'warehouse-of-a-test'; did you mean 'warehouse_of_a_test'\?"
    ):
        sink_named("warehouse-of-a-test")


@pytest.mark.parametrize("name", ["", "a b", "module:", ":SINK", "a:b:c", "../a", "module:SINK()"])
def test_a_name_that_no_sink_can_have_is_refused_with_the_settings(name: str) -> None:
    with pytest.raises(ValueError, match=r"is no name of a sink: kafka, .*, the name of an entry point"):
        settings(name)


def _read_with_spark(settings: Settings) -> None:
    nothing: Any = None
    results(nothing, settings)


@pytest.mark.parametrize("ask", [sink_of, _read_with_spark])
def test_a_name_that_no_sink_has_is_refused_with_those_that_there_are(ask: Callable[[Settings], Any]) -> None:
    with pytest.raises(ConfigError, match=r"there is no sink 'parket'; did you mean 'parquet'\?") as caught:
        ask(settings("parket"))
    assert ", ".join(SINKS) in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("attribute", "what"), [("number", "of type int"), ("Replacing", "the class Replacing")]
)
@pytest.mark.parametrize("ask", [sink_of, _read_with_spark])
def test_what_is_no_sink_is_refused_with_what_to_write(
    own: ModuleType, attribute: str, what: str, ask: Callable[[Settings], Any]
) -> None:
    with pytest.raises(ConfigError, match=f"is {what}, and no object of a class") as caught:
        ask(settings(f"own_sinks_of_a_test:{attribute}"))
    assert "SINK = MySink()" in (caught.value.hint or "")


def test_a_sink_that_does_not_say_what_becomes_of_repetitions_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not say what becomes of the rows of a repeated micro-batch"):
        Silent().check(settings("silent"))
    Replacing().check(settings("replacing"))


def test_a_sink_of_rows_keeps_the_contract() -> None:
    check_sink(Replacing())
    check_sink(Replacing(), path="warehouse://somewhere/table")


def test_a_place_is_where_path_says_and_a_view_has_its_own() -> None:
    here = settings_for(Replacing(), path="warehouse://table")
    assert Replacing().place(here) == "replacing warehouse://table"
    assert Replacing().place(view(here, "v")) == "replacing warehouse://table.v"
    assert Replacing().place(view(settings_for(Replacing()), "v")) == "replacing q.v"
    assert here.results.folder is None, "no service takes a place of a sink of one's own for a folder"


def test_a_start_over_is_refused_where_the_query_has_begun_to_write() -> None:
    sink = Replacing()
    start = StartFacts(
        names=lambda place: [],
        text=lambda file: None,
        written=lambda topic: 0,
        planned=None,
        begun="/lost",
        run=None,
    )
    with pytest.raises(IncompatibleStateError, match=r"has begun to write its results .* \(it was /lost\)"):
        sink.admit(settings_for(sink), start)


def test_a_sink_that_does_not_read_back_says_so() -> None:
    sink, its = Replacing(), settings_for(Replacing())
    for call in (sink.check_reading, sink.position, sink.read_back):
        with pytest.raises(ConfigError, match="does not read results back, so there is nothing to verify"):
            call(its)
    for reads in SINKS.values():
        reads.check_reading(its)


@pytest.mark.parametrize(
    ("sink", "what", "hint"),
    [
        (
            "own_sinks_of_a_test:SINK",
            "a sink of your own, and only it knows",
            "written them, or give its class a method spark_rows",
        ),
        ("postgres", "Spark reads tables of Postgres by its own source", r'spark\.read\.format\("jdbc"\)'),
    ],
)
def test_a_sink_that_does_not_say_how_spark_reads_its_rows_is_refused(
    own: ModuleType, sink: str, what: str, hint: str
) -> None:
    nothing: Any = None
    with pytest.raises(ConfigError, match=f"{what}.*\n.*{hint}"):
        results(nothing, settings(sink, path="postgresql://u@h/d/t"))


def _every_other(tables: Iterable[pa.Table], bucket: int, *, shape: Shape) -> Iterator[pa.Table]:
    for table in shape(tables, bucket):
        yield table.slice(0, table.num_rows // 2)


def _at_the_end(tables: Iterable[pa.Table], bucket: int, *, shape: Shape) -> Iterator[pa.Table]:
    yield from list(shape(tables, bucket))


class Losing(Replacing):
    def shaper(self, settings: Settings) -> Shape:
        return partial(_every_other, shape=super().shaper(settings))


class Collecting(Replacing):
    def shaper(self, settings: Settings) -> Shape:
        return partial(_at_the_end, shape=super().shaper(settings))


class InOnePlace(Replacing):
    def place(self, settings: Settings) -> str:
        return "here"


class Greedy(Replacing):
    needs = ("path",)

    def check(self, settings: Settings) -> None:
        pass


class Nameless(Replacing):
    name = "two words"


@pytest.mark.parametrize(
    ("sink", "law"),
    [
        (Losing, "loses no row"),
        (Collecting, "holds at most 5 tables"),
        (InOnePlace, "place of a view is not that of its query"),
        (Greedy, r"raises ConfigError without results\.path"),
    ],
)
def test_the_law_that_a_sink_breaks_is_named(sink: type[RowsSink], law: str) -> None:
    with pytest.raises(AssertionError, match=f"a sink keeps its contract only if .*{law}"):
        check_sink(sink())


def test_a_sink_without_a_name_that_settings_can_have_is_refused() -> None:
    with pytest.raises(ValueError, match="is no name of a sink"):
        check_sink(Nameless())


def test_the_page_has_every_law_of_a_sink() -> None:
    page = (Path(__file__).parents[4] / "docs" / "your-own-sinks.md").read_text()
    for law in LAWS:
        assert f"| {law.__name__.replace('_', ' ')} | {first_paragraph(law.__doc__)} |" in page
