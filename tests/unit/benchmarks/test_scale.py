"""The page of the bill: setups, tables, pictures, and costs that are fitted to measured times."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.pages.rows import kept_rows
from benchmarks.pages.tables import figure, into_page
from benchmarks.scale.__main__ import FOLDER, PAGE, tables
from benchmarks.scale.load import groups_skew
from benchmarks.scale.pages import ADVICE, WORDS
from benchmarks.scale.setups import SETUPS, bill_of
from benchmarks.scale.timing import cpu, fitted
from benchmarks.scale.whole_runs import SCENARIOS, whole_runs
from evenflow.scale.costs import Units, by_place, terms
from evenflow.scale.law import LAWS, ZipfLaw
from evenflow.scale.measurements import MEASURED, Measurements
from evenflow.scale.runs import WholeRuns
from tests.unit.scale.test_costs import FREE, LOAD, SMALL


def test_keys_that_are_hashed_to_groups_fill_one_more_than_the_others() -> None:
    assert groups_skew(ZipfLaw("one", 0.0, 1, "nothing"), 10) == pytest.approx(10)


def test_costs_are_found_from_their_sums_and_are_never_negative() -> None:
    counts = [(1, 1), (1, 10), (1, 100)]
    assert fitted(counts, [5.0, 23.0, 203.0]) == pytest.approx([3.0, 2.0])
    assert min(fitted([(1, 1), (1, 10)], [2.0, 1.0])) == 0.0
    assert cpu(lambda: np.arange(10), repetitions=3) >= 0


def test_every_unit_is_explained_and_every_advice_is_about_a_term() -> None:
    assert set(WORDS) == {entry.name for entry in fields(Units)}
    named = {(term.topic, term.place) for term in terms(SMALL, LOAD, FREE, cooperative=True)}
    assert set(ADVICE) <= named


def test_a_setup_of_several_queries_costs_as_much_as_all_of_them() -> None:
    setup = SETUPS["ten queries"]
    one = terms(setup.shape, LOAD, replace(FREE, tuple_partitioned=1e-6))
    whole = bill_of(setup, LOAD, replace(FREE, tuple_partitioned=1e-6))
    assert by_place(whole)["instances"] == pytest.approx(10 * by_place(one)["instances"]) == pytest.approx(10)


def test_figures_have_the_digits_that_count() -> None:
    assert [figure(value) for value in (0, 0.00001, 0.0004, 0.123, 9.87, 12345.6)] == [
        "0", "<0.0001", "0.0004", "0.12", "9.9", "12,346",
    ]  # fmt: skip


def test_the_page_shows_what_is_kept() -> None:
    kept, _ = Measurements.read(MEASURED)
    page = PAGE.read_text(encoding="utf-8")
    assert not kept.smoke
    assert {row["law"] for row in kept.routing} == {law.name for law in LAWS}
    for part, made in tables(kept).items():
        assert into_page(page, "scale", part, made) == page, (
            f"run python -m benchmarks.scale: {part} is of other figures"
        )


def test_a_table_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the table units"):
        into_page("nothing", "scale", "units", "| a |")


def test_the_pictures_are_there() -> None:
    assert "<svg" in Path(FOLDER / "workers.svg").read_text(encoding="utf-8")


def test_the_model_is_compared_with_the_rows_that_are_kept() -> None:
    assert WholeRuns.read() == whole_runs(kept_rows(SCENARIOS)), "python -m benchmarks.scale"
