"""Parquet as a source: types as the file has them, times by unit, fields within others, and what is
refused.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from evenflow.console import library_application
from evenflow.errors import ConfigError
from evenflow.sources.datasets import open_source, reading_of
from evenflow.sources.source import Batch, SourceOptions

AT = [datetime(2026, 1, 1, 0, 0, second, 250_000, UTC) for second in (3, 1, 2)]
ORDERS = pa.table(
    {
        "who": ["a", "b", "a"],
        "at": pa.array(AT, pa.timestamp("us", "UTC")),
        "ms": [3_000, 1_000, 2_000],
        "amount": pa.array([Decimal("1.10"), None, Decimal("2.20")], pa.decimal128(10, 2)),
        "day": [date(2026, 1, 1)] * 3,
        "user": [{"id": 7, "name": "x"}, {"id": 8, "name": "y"}, {"id": 7, "name": "z"}],
        "kind": pa.array(["new", "old", "new"]).dictionary_encode(),
    }
)
FLAT = ("who", "at", "ms", "amount", "day", "kind")


def written(folder: Path, table: pa.Table = ORDERS, name: str = "orders.parquet") -> str:
    path = folder / name
    pq.write_table(table, path, row_group_size=2)
    return str(path)


def whole(text: str, **options: object) -> Batch:
    (batch,) = open_source(text, SourceOptions(**options)).batches()  # type: ignore[arg-type]
    return batch


def test_rows_are_sorted_by_time_and_columns_keep_their_types(tmp_path: Path) -> None:
    batch = whole(written(tmp_path), key="who", time="ms", columns=FLAT)
    assert batch.keys.to_pylist() == [b"b", b"a", b"a"]
    assert batch.times.tolist() == [1_000, 2_000, 3_000]
    assert batch.columns.schema.field("ms").type == pa.int64()
    assert batch.columns["amount"].to_pylist() == [None, Decimal("2.20"), Decimal("1.10")]
    assert batch.columns["day"].to_pylist() == ["2026-01-01"] * 3
    assert batch.columns["kind"].to_pylist() == ["old", "new", "new"]


def test_a_point_in_time_needs_no_unit_and_travels_as_text(tmp_path: Path) -> None:
    batch = whole(written(tmp_path), key="who", time="at")
    assert batch.times.tolist() == [1_767_225_601_250, 1_767_225_602_250, 1_767_225_603_250]
    assert batch.columns["at"].to_pylist()[0] == "2026-01-01T00:00:01.250000Z"


@pytest.mark.parametrize(("unit", "first"), [("s", 1_767_225_601), ("ms", 1_767_225_601_250)])
def test_a_point_in_time_becomes_the_number_that_is_asked_for(unit: str, first: int, tmp_path: Path) -> None:
    batch = whole(written(tmp_path), key="who", time="at", time_unit=unit)
    assert batch.columns["at"].to_pylist()[0] == first
    assert batch.times.tolist()[0] == first * (1_000 if unit == "s" else 1)


def test_a_time_of_another_zone_is_the_same_point_in_time(tmp_path: Path) -> None:
    table = ORDERS.set_column(1, "at", ORDERS["at"].cast(pa.timestamp("ns", "Asia/Tokyo")))
    batch = whole(written(tmp_path, table), key="who", time="at")
    assert batch.columns["at"].to_pylist()[0] == "2026-01-01T00:00:01.250000Z"


def test_a_field_within_others_is_named_by_its_path(tmp_path: Path) -> None:
    batch = whole(written(tmp_path), key="user.id", time="ms", columns=("user.id", "ms"))
    assert batch.keys.to_pylist() == [b"8", b"7", b"7"]
    with pytest.raises(ConfigError, match=r"has no field 'user.mail'"):
        whole(written(tmp_path), key="user.mail", time="ms")
    with pytest.raises(ConfigError, match="the key column 'user' holds objects or lists"):
        whole(written(tmp_path), key="user", time="ms")


def test_the_first_rows_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    batch = whole(written(tmp_path), key="who", time="ms", columns=("who", "ms"), keep_order=True, first=2)
    assert batch.times.tolist() == [3_000, 1_000]
    assert batch.columns.column_names == ["who", "ms"]


def test_it_is_said_how_a_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, name="orders")
    assert (
        reading_of(path).remark
        == f"{path}: read as Parquet, 3 rows, columns who, at, ms, amount, day, user, kind; --format says"
        " otherwise"
    )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("o.csv", {}, "o.csv holds Parquet, although its name says csv"),
        ("o.parquet", {"format": "csv"}, "o.parquet holds Parquet, not csv"),
        ("o.parquet", {"delimiter": ";"}, "takes no --delimiter"),
        ("o.parquet", {"key": "whom", "time": "ms"}, "has no column 'whom'; it has 'who', 'at'"),
        ("o.parquet", {"key": "who", "time": "who"}, "'who' is 'a' in row 1"),
        ("o.parquet", {"key": "who"}, "which column is the event time"),
    ],
)
def test_what_does_not_fit_the_file_is_refused(
    name: str, options: dict, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(written(tmp_path, name=name), SourceOptions(**options))
    assert message in caught.value.message


def test_bytes_that_are_no_parquet_are_refused(tmp_path: Path) -> None:
    raw = Path(written(tmp_path)).read_bytes()
    for content in (b"", b"who,at\na,1\n", raw[:-9], b"PAR1", raw[4:]):
        (tmp_path / "cut.parquet").write_bytes(content)
        with pytest.raises(ConfigError, match="is no Parquet file"):
            open_source(str(tmp_path / "cut.parquet"), SourceOptions(key="who", time="ms"))
    # The ends are those of Parquet, and what lies between is not.
    (tmp_path / "bent.parquet").write_bytes(b"PAR1" + b"\xff" * 200 + b"PAR1")
    with pytest.raises(ConfigError, match="is not a readable Parquet file"):
        open_source(str(tmp_path / "bent.parquet"), SourceOptions(key="who", time="ms"))


def test_a_folder_of_parquet_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders.parquet").mkdir()
    with pytest.raises(ConfigError, match="is a folder, not one Parquet file"):
        open_source(str(tmp_path / "orders.parquet"), SourceOptions(key="who", time="ms"))


def test_a_file_without_rows_is_an_empty_stream(tmp_path: Path) -> None:
    path = written(tmp_path, ORDERS.slice(0, 0))
    assert open_source(path, SourceOptions(key="who", time="at")).rows == 0


def test_the_command_simulates_a_parquet_file(tmp_path: Path) -> None:
    words = ["simulate", "--input", written(tmp_path), "--key", "user.id", "--time", "at", "--workers", "2"]
    shown = CliRunner().invoke(
        library_application(), [*words, "--partitioner", "hashing", "--json", "--jobs", "1"]
    )
    assert shown.exit_code == 0, shown.output
    assert '"tuples": 3, "keys": 2' in shown.stdout
