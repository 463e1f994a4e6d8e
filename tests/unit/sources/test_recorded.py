"""Data sets of fixed columns: files of users, hostile ones too, and generated rows."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.sources.datasets import open_source
from evenflow.sources.formats import cluster_tasks, retail, taxi
from evenflow.sources.formats.made_words import word_of
from evenflow.sources.source import Source, SourceOptions

RIDE = (
    "07290D3599E7A0D62097A346EFCC1FB5,E7750A37CAB07D0DFF0AF7E3573AC141,2013-01-01 00:00:00,2013-01-01"
    " 00:02:00,120,0.44,-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50\n"
)
TASK = "600000000,,3418309,0,4155527081,0,user,3,9,0.125,0.07446,0.0004244,\n"
PURCHASES = (
    "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
    '536365,85123A,"HOLDER, WHITE",6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom\n'
)
FILES = {"taxi": RIDE, "cluster-tasks": TASK, "retail": PURCHASES}
COLUMNS = {
    "taxi": taxi.COLUMNS,
    "cluster-tasks": cluster_tasks.COLUMNS,
    "retail": retail.COLUMNS,
}
EVERY = pytest.mark.parametrize("name", FILES)


def opened(name: str, path: Path, content: str | bytes) -> Source:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_source(f"{name}:{path}")


@EVERY
@pytest.mark.parametrize("wrapping", ["csv", "csv.gz"])
def test_a_file_of_a_data_set_has_its_columns_and_types(tmp_path: Path, name: str, wrapping: str) -> None:
    content = FILES[name].encode()
    source = opened(
        name, tmp_path / f"rows.{wrapping}", gzip.compress(content) if "gz" in wrapping else content
    )
    assert source.column_names == list(COLUMNS[name])
    made = next(iter(open_source(f"{name}:tuples=10").batches()))
    (read,) = source.batches()
    assert read.columns.schema == made.columns.schema
    assert source.rows == 1


def test_times_are_those_of_the_data_set(tmp_path: Path) -> None:
    expected = {"taxi": 1_356_998_520_000, "cluster-tasks": 600_000, "retail": 1_291_191_960_000}
    for name, content in FILES.items():
        (batch,) = opened(name, tmp_path / name, content).batches()
        assert batch.times.tolist() == [expected[name]], name


def _accented(text: str) -> str:
    """With a letter in each kind of row that is not ASCII."""
    return text.replace("user", "us\xe9r").replace("WHITE", "WH\xcfTE").replace("CSH", "\xe9")


@EVERY
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: "", "is empty"),
        (lambda text: " \n\n", "is empty"),
        (lambda text: text + text.splitlines()[-1] + ",extra\n", "Expected"),
        (lambda text: text + "only,two\n", "Expected"),
        (lambda text: b"\xff\xfe" + text.encode("utf-16-le"), ""),
        (lambda text: _accented(text).encode("latin-1"), "encoding"),
        (lambda text: b"\x00\x01\x02\xff" * 100, ""),
    ],
    ids=["empty", "blank", "one more", "ragged", "utf-16", "latin-1", "any bytes"],
)  # fmt: skip
def test_a_file_that_is_damaged_is_refused_in_words(tmp_path: Path, name: str, damage, said: str) -> None:
    with pytest.raises(ConfigError, match=said or None) as raised:
        opened(name, tmp_path / "damaged.csv", damage(FILES[name]))
    assert raised.value.hint


@pytest.mark.parametrize("name", ["taxi", "cluster-tasks"])
def test_a_file_of_another_width_is_refused_with_the_columns_that_it_should_have(tmp_path, name) -> None:
    with pytest.raises(ConfigError, match=f"3 columns, not the {len(COLUMNS[name])}") as raised:
        opened(name, tmp_path / "narrow.csv", "a,b,c\n")
    assert next(iter(COLUMNS[name])) in str(raised.value.hint)


def test_a_purchase_without_its_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no column 'StockCode'"):
        opened("retail", tmp_path / "other.csv", "a,b\n1,2\n")


def test_a_number_that_is_none_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Row #2.*cheap"):
        opened("taxi", tmp_path / "rides.csv", RIDE + RIDE.replace("3.50", "cheap"))


@pytest.mark.parametrize("name", [*FILES, "made-words"])
def test_generated_rows_are_those_of_their_seed(name: str) -> None:
    def rows(words: str) -> list[dict[str, object]]:
        return [
            row for batch in open_source(f"{name}:{words}").batches(70) for row in batch.columns.to_pylist()
        ]

    assert rows("tuples=200,seed=3") == rows("tuples=200,seed=3")
    assert rows("tuples=200,seed=3") != rows("tuples=200,seed=4")
    assert len(rows("tuples=200,seed=3")) == 200


@pytest.mark.parametrize("name", [*FILES, "made-words"])
@pytest.mark.parametrize(
    "words", ["tuples=0", "tuples=9e12", "rate=0", "color=red", "seed=x", "tuples=1,tuples=2"]
)
def test_options_that_mean_nothing_are_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError):
        open_source(f"{name}:{words}")


@EVERY
def test_a_file_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(ConfigError, match=r"there is no file /nowhere/rows\.csv"):
        open_source(f"{name}:/nowhere/rows.csv")


@pytest.mark.parametrize("words", ["taxi:taxis=9e12", "cluster-tasks:jobs=9e12", "made-words:words=9e12"])
def test_more_keys_than_lie_in_memory_are_refused(words: str) -> None:
    with pytest.raises(ConfigError, match="exceed 10,000,000"):
        open_source(words)


def test_no_two_ranks_share_a_word() -> None:
    assert len({word_of(rank) for rank in range(200_000)}) == 200_000


@pytest.mark.parametrize(
    ("place", "cell", "area"),
    [
        ("-74.913000,41.474500", "1.1", "2.2"),
        ("-74.914000,41.475500", "1.1", "1.1"),
        ("-74.907000,41.470000", "2.2", "4.4"),
        ("-73.123000,40.131500", "300.300", "600.600"),
        ("-73.985000,40.758000", "156.161", "312.321"),  # the number from west to east comes first
        ("0,0", None, None),
        ("-74.917,41.474937", None, None),
        (",", None, None),
    ],
)
def test_a_place_is_in_its_cell_of_the_grid_or_in_none(tmp_path: Path, place: str, cell, area) -> None:
    ride = RIDE.replace("-73.956528,40.716976", place)
    path = tmp_path / "rides.csv"
    path.write_text(ride)
    options = SourceOptions(columns=("pickup_cell", "pickup_area"))
    (batch,) = open_source(f"taxi:{path}", options).batches()
    assert batch.columns.to_pylist() == [{"pickup_cell": cell, "pickup_area": area}]


def test_a_cell_may_be_the_key() -> None:
    source = open_source("taxi:tuples=50", SourceOptions(key="pickup_cell", columns=("pickup_cell",)))
    (batch,) = source.batches()
    assert batch.keys.to_pylist() == [cell.encode() for cell in batch.columns["pickup_cell"].to_pylist()]
