"""A sweep that was stopped anywhere goes on to the same table; what is not its own is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.simulation import KeyedStream, Origin, Scenario, from_columns
from evenflow.sweep import Cell, Grid, Store, read_table, run
from evenflow.sweep.run import CellOutcome
from evenflow.sweep.table import ROWS, SERIES
from tests.examples import examples

GRID = Grid(
    partitioners=("hashing", "pkg:d=3"),
    workers=(3, 4),
    sources=(1, 2),
    seeds=(1, 2),
    exponents=(1.0, 1.5),
    scenario=Scenario(workers=1, window_ms=200, slide_ms=20),
    origin=Origin(stream="zipf", generator_keys=50, period_ms=1_000),
    tuples=600,
)
CELLS = GRID.cells()
_number = count()


@cache
def outcomes() -> tuple[CellOutcome, ...]:
    result: list[CellOutcome] = []
    run(CELLS, processes=1, finish=result.append)
    return tuple(result)


def sweep(file: Path, done: Sequence[CellOutcome], *, series: Path | None = None, whole: bool = True) -> None:
    """Run what is left of the sweep with outcomes that are known, and write the table if it is whole."""
    with Store(CELLS, file, series) as store:
        left = {cell.key for cell in store.left}
        for outcome in done:
            if outcome.cell.key in left:
                store.add(outcome)
        if whole:
            store.finish()


@given(
    done=st.permutations(range(len(CELLS))),
    stops=st.lists(st.integers(0, len(CELLS)), max_size=3),
    ending=st.sampled_from([".csv", ".parquet"]),
    cut=st.integers(0, 60),
)
@examples(40)
def test_wherever_a_sweep_stops_it_goes_on_to_the_same_table(
    tmp_path_factory: pytest.TempPathFactory, done: list[int], stops: list[int], ending: str, cut: int
) -> None:
    folder = tmp_path_factory.mktemp(f"sweep{next(_number)}")
    file, series = folder / f"t{ending}", folder / f"s{ending}"
    for stop in stops:
        sweep(file, [outcomes()[at] for at in done[:stop]], series=series, whole=False)
        part = file.with_name(f"{file.name}.part")
        if part.exists():
            text = part.read_bytes()
            last_line = len(text) - (text[:-1].rfind(b"\n") + 1)
            # The process was killed while it wrote its last line.
            part.write_bytes(text[: len(text) - min(cut, last_line)])
    sweep(file, outcomes(), series=series)
    table = read_table(file)
    assert table.schema == ROWS
    assert table.to_pylist() == [outcome.row for outcome in outcomes()]
    points = read_table(series, SERIES)
    assert points.column("imbalance").to_pylist() == [
        value for outcome in outcomes() for value in outcome.imbalance.tolist()
    ]
    assert sorted(path.name for path in folder.iterdir()) == sorted([file.name, series.name])


def test_two_processes_find_what_one_finds(tmp_path: Path) -> None:
    result: list[CellOutcome] = []
    run(CELLS, processes=2, finish=result.append)
    sweep(tmp_path / "t.csv", result)
    untimed = [name for name in ROWS.names if name not in ("seconds", "ns_per_tuple")]
    assert read_table(tmp_path / "t.csv").select(untimed).to_pylist() == [
        {name: outcome.row[name] for name in untimed} for outcome in outcomes()
    ]


def test_two_processes_share_the_tuples_of_a_file() -> None:
    stream = from_columns(pa.array([f"k{at * at % 17}" for at in range(600)]), None)
    grid = replace(GRID, exponents=(), origin=Origin(stream="a.csv", key="k"))
    for processes in (1, 2):
        rows = file_rows(grid, stream, processes)
        assert len(rows) == grid.size == 16
        assert {row["stream"] for row in rows} == {"a.csv"}
        assert {row["seed"] for row in rows} == {None}
        assert {row["hash_seed"] for row in rows} == {1, 2}


def file_rows(grid: Grid, stream: KeyedStream, processes: int) -> list[dict]:
    result: list[CellOutcome] = []
    run(grid.cells(), file=stream, processes=processes, finish=result.append)
    return [outcome.row for outcome in result]


def test_a_row_says_all_that_made_it() -> None:
    row = outcomes()[-1].row
    assert list(row) == ROWS.names
    assert (row["partitioner"], row["workers"], row["sources"], row["seed"], row["exponent"]) == (
        "pkg:d=3",
        4,
        2,
        2,
        1.5,
    )
    assert json.loads(row["options"])["d"] == 3
    assert (row["window_ms"], row["slide_ms"], row["generator_keys"]) == (200, 20, 50)
    assert row["cpu"]
    assert row["cores"] >= 1


def test_a_finished_sweep_runs_nothing_again_and_a_longer_one_only_what_is_new(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    sweep(file, outcomes())
    with Store(CELLS, file) as store:
        assert store.left == []
    longer = replace(GRID, seeds=(1, 2, 3)).cells()
    with Store(longer, file) as store:
        assert {cell.origin.seed for cell in store.left} == {3}
        assert len(store.left) == 16
    # The series of the finished cells is not there, so they run again when it is wanted.
    with Store(CELLS, file, tmp_path / "s.csv") as store:
        assert len(store.left) == len(CELLS)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (replace(GRID, tuples=700), "tuples 600 there, 700 here"),
        (replace(GRID, seeds=(2, 3)), "seed 1 there, 2, 3 here"),
        (replace(GRID, partitioners=("pkg:d=3",)), "partitioner hashing there, pkg:d=3 here"),
        (
            replace(GRID, scenario=Scenario(workers=1, window_ms=400, slide_ms=20)),
            "window_ms 200 there, 400 here",
        ),
    ],
)
def test_the_output_of_another_sweep_is_refused(tmp_path: Path, other: Grid, expected: str) -> None:
    for whole in (True, False):
        file = tmp_path / f"t{whole}.csv"
        sweep(file, outcomes(), whole=whole)
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(ConfigError, match=f"has rows of another sweep: {expected}"):
            Store(other.cells(), file).__enter__()
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_that_was_cut_is_refused(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"t{ending}"
    sweep(file, outcomes())
    content = file.read_bytes()
    for length in (0, 1, len(content) // 3, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:length])
        with pytest.raises(ConfigError, match=r"was cut|no table of a sweep"):
            Store(CELLS, file).__enter__()


def test_a_damaged_line_of_the_finished_cells_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    for line in ("x", "{}", "[]", '{"row": {}, "series": null}', '{"row": 3}'):
        file.with_name("t.csv.part").write_text(f"{line}\n")
        with pytest.raises(ConfigError, match=r"line 1 of .*t\.csv\.part is no finished cell"):
            Store(CELLS, file).__enter__()


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="is no table of a sweep: it has no column 'partitioner'"):
        Store(CELLS, file).__enter__()
    for target, expected in (("t.txt", "ends with none of"), ("no/t.csv", "there is no folder")):
        with pytest.raises(ConfigError, match=expected):
            Store(CELLS, tmp_path / target)
    with pytest.raises(ConfigError, match="have the same file"):
        Store(CELLS, file, file)


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    with (
        Store(CELLS, tmp_path / "t.csv"),
        pytest.raises(ConfigError, match="another sweep is writing"),
    ):
        Store(CELLS, tmp_path / "t.csv").__enter__()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"partitioners": ("pgk",)}, "unknown partitioner 'pgk'; did you mean 'pkg'"),
        ({"partitioners": ("pkg:e=3",)}, "unknown option 'e' of pkg"),
        ({"partitioners": ("pkg", "pkg")}, "given twice"),
        ({"workers": (0,)}, "workers must be at least 1"),
        ({"sources": (0,)}, "sources must be at least 1"),
        ({"seeds": ()}, "a sweep needs seeds"),
        ({"seeds": (-1, 1)}, "a seed must be at least 0"),
        ({"origin": Origin(stream="uniform", generator_keys=5, period_ms=9)}, "uniform has no exponent"),
        ({"seeds": tuple(range(100_000))}, "the sweep has 1,600,000 cells"),
    ],
)
def test_a_grid_that_cannot_be_is_refused_before_anything_runs(changes: dict, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        replace(GRID, **changes)
    assert expected in str(caught.value)


def test_every_cell_has_a_key_of_its_own() -> None:
    keys: set[object] = {cell.key for cell in CELLS}
    assert len(keys) == GRID.size == 32
    assert isinstance(CELLS[0], Cell)
