"""Parquet results on real Spark: whatever is cut off at whichever step, a plain reader sees each row once."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.functions import lit

from evenflow.errors import ConfigError, DataLossError
from evenflow.settings import load_settings
from evenflow.twostep.readable import TIME
from spark_consumers.checkpoints import folders
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.result_files import MARKER, Owner, ResultFiles, file_name
from spark_consumers.checkpoints.runs import run_name
from spark_consumers.labels import bucket_labels
from spark_consumers.session import make_session

pytestmark = pytest.mark.pipeline

OWNER = Owner(query="q", fingerprint="f", run="r")
BUCKETS = 3


class CutOffError(Exception):
    """What a SIGKILL does, for a test that goes on."""


@dataclass(frozen=True)
class Fragile(Folder):
    """A folder whose writer dies before or after the n-th change; the reader looks after every one."""

    dies_at: float
    seen: list[set[tuple[int, int]]] = field(default_factory=list)

    def write(self, name: str, text: str) -> None:
        self._step(super().write, name, text)

    def bring(self, source: str, target: str) -> None:
        self._step(super().bring, source, target)

    def delete(self, name: str) -> None:
        self._step(super().delete, name)

    def names(self, folder: str = "") -> list[str]:
        return self._step(super().names, folder)

    def _step(self, change: Any, *words: str) -> Any:
        number = len(self.seen)
        if number + 0.5 == self.dies_at:
            raise CutOffError
        result = change(*words)
        self.seen.append(rows_of(Path(self.location)))
        if number + 1 == self.dies_at:
            raise CutOffError
        return result


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("spark")
    (folder / "none.json").write_text("{}")
    session = make_session(
        load_settings(folder / "none.json", query={"name": "q"}, spark={"checkpoint": str(folder)})
    )
    yield session
    session.stop()


def rows_of(folder: Path) -> set[tuple[int, int]]:
    """(window_start, key) of all rows, each of which must be there once."""
    if not list(folder.glob("*.parquet")):
        return set()
    with duckdb.connect() as db:
        rows = db.execute(
            f"SELECT epoch_ms(window_start), key FROM read_parquet('{folder}/*.parquet')"
        ).fetchall()
    assert max(Counter(rows).values()) == 1, "a row is there twice"
    return set(rows)


def drafted(folder: Path, batch: int, epoch: int = 1) -> str:
    """Files as Spark's tasks leave them: twelve keys of one window, none of them in bucket 0."""
    draft = f"_writing/{run_name(epoch)}/{batch}-{uuid4().hex}"
    (folder / draft).mkdir(parents=True)
    for bucket in range(BUCKETS + 1):
        keys = [key for key in range(12) if key % BUCKETS == bucket - 1]
        times = [pa.array([batch * 1000 + more] * len(keys), TIME) for more in (0, 1000)]
        table = pa.table([*times, pa.array(keys, pa.int64())], ["window_start", "window_end", "key"])
        pq.write_table(table, folder / draft / f"part-{bucket:05d}-x-c000.snappy.parquet")
    return draft


def expected(*batches: int) -> set[tuple[int, int]]:
    return {(batch * 1000, key) for batch in batches for key in range(12)}


def write(folder: Folder, *batches: int, epoch: int = 1) -> None:
    """What an application does between its start and its end."""
    files = ResultFiles(folder, OWNER, epoch=epoch)
    files.prepare()
    for batch in batches:
        files.publish(drafted(Path(folder.location), batch, epoch), batch, range(1, BUCKETS + 1))


def test_a_micro_batch_that_was_cut_off_at_any_step_and_repeated_leaves_each_row_once(
    spark: Any, tmp_path: Path
) -> None:
    write(whole := Fragile(spark, str(tmp_path / "whole"), -1), 6, 7)
    steps = len(whole.seen)
    assert steps > 12
    for half in range(1, 2 * steps + 1):
        folder = Fragile(spark, str(tmp_path / str(half)), half / 2)
        with pytest.raises(CutOffError):
            write(folder, 6, 7)
        before = folder.seen[-1] if folder.seen else set()
        last = 7 if before & expected(7) else 6  # a later micro-batch begins once the one before is done
        again = Fragile(spark, folder.location, -1)
        write(again, *range(last, 8), epoch=2)
        assert all(before <= seen <= expected(6, 7) for seen in again.seen), "nothing disappears meanwhile"
        assert rows_of(Path(folder.location)) == expected(6, 7)
        assert list(Path(folder.location, "_writing").glob("*/*")) == []


def test_a_file_that_the_repeated_micro_batch_has_no_more_is_removed(spark: Any, tmp_path: Path) -> None:
    folder, files = Folder(spark, str(tmp_path)), lambda: {path.name for path in tmp_path.glob("*.parquet")}
    write(folder, 7, 17)
    before = files()
    surplus = tmp_path / file_name("q", 7, 9)
    shutil.copy(tmp_path / file_name("q", 7, 1), surplus)
    write(folder, 7)
    assert files() == before


def test_files_that_a_newer_driver_has_removed_are_missed_and_nothing_is_published(
    spark: Any, tmp_path: Path
) -> None:
    old, new = (ResultFiles(Folder(spark, str(tmp_path)), OWNER, epoch=epoch) for epoch in (1, 2))
    old.prepare()
    draft = drafted(tmp_path, 7)
    new.prepare()
    with pytest.raises(DataLossError, match=r"lacks the files of buckets \[1, 2, 3\]"):
        old.publish(draft, 7, range(1, BUCKETS + 1))
    draft = drafted(tmp_path, 8)
    next((tmp_path / draft).glob("part-00002-*")).unlink()
    with pytest.raises(DataLossError, match=r"lacks the files of buckets \[2\]"):
        old.publish(draft, 8, range(1, BUCKETS + 1))
    assert rows_of(tmp_path) == set()


def test_an_older_driver_that_starts_late_leaves_alone_what_a_newer_one_is_writing(
    spark: Any, tmp_path: Path
) -> None:
    old, new = (ResultFiles(Folder(spark, str(tmp_path)), OWNER, epoch=epoch) for epoch in (1, 2))
    new.prepare()
    draft = drafted(tmp_path, 7, epoch=2)
    old.prepare()
    new.publish(draft, 7, range(1, BUCKETS + 1))
    assert rows_of(tmp_path) == expected(7)


def test_a_driver_that_was_fenced_within_its_moves_never_takes_away_what_its_successor_published(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an object store, where a rename never replaces a file, and says no if the file is not there."""

    def renamed(files: Any, old: Any, new: Any) -> bool:
        if files.exists(new) or not files.exists(old):
            return False
        return bool(files.rename(old, new))

    monkeypatch.setattr(folders, "_renamed", renamed)
    old, new = (ResultFiles(Folder(spark, str(tmp_path)), OWNER, epoch=epoch) for epoch in (1, 2))
    old.prepare()
    fenced = drafted(tmp_path, 7)
    moves = old._moves(fenced, 7, range(1, BUCKETS + 1))  # all files are there: it stands still now
    new.prepare()
    new.publish(drafted(tmp_path, 7, epoch=2), 7, range(1, BUCKETS + 1))
    for source, target in moves:
        old.folder.bring(source, target)
    assert rows_of(tmp_path) == expected(7)


def test_a_folder_that_cannot_be_written_is_refused_with_the_setting_to_change(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"results\.path .*/file/results cannot be written: .*file"):
        ResultFiles(Folder(spark, str(tmp_path / "file/results")), OWNER, epoch=1).prepare()


def test_spark_writes_typed_files_of_the_buckets_that_have_rows_and_none_without_rows(
    spark: Any, tmp_path: Path
) -> None:
    files = ResultFiles(Folder(spark, str(tmp_path / "a, b")), OWNER, epoch=1)
    files.prepare()
    columns = 'window_start bigint, window_end bigint, key string, `odd, "name"` double'
    rows = [(-1000, 0, "Zürich", 0.5), (8_639_999_999_999_000, 8_640_000_000_000_000, "", None)]
    frame = spark.createDataFrame(rows, columns).repartition(3, lit(bucket_labels(3)[2]))
    files.write(frame, 0)()
    files.write(frame.where("key = 'none'"), 1)()
    assert sorted(path.name for path in (tmp_path / "a, b").glob("*.parquet")) == [file_name("q", 0, 2)]
    table = pq.read_table(tmp_path / "a, b" / file_name("q", 0, 2))
    assert table.schema.types == [TIME, TIME, pa.string(), pa.float64()]
    assert [value.value for value in table["window_end"]] == [0, 8_640_000_000_000_000]
    assert table["key"].to_pylist() == ["Zürich", ""]
    assert Owner.read((tmp_path / "a, b" / MARKER).read_text(), "") == OWNER
