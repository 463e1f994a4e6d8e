"""Which tuples of a source are its sample."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenflow.advice import Sample
from evenflow.sources.datasets import open_source
from evenflow.sources.sample import first_columns, first_tuples
from evenflow.sources.source import Batch, SourceOptions, TableSource


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("who,at\nb,3\na,1\nc,2\n")
    return path


@pytest.mark.parametrize(("tuples", "complete"), [(2, False), (3, True), (9, True)])
def test_a_file_gives_its_earliest_tuples(orders: Path, tuples: int, complete: bool) -> None:
    result = first_tuples(open_source(str(orders), SourceOptions(key="who", time="at")), tuples, timed=True)
    assert result.keys.to_pylist() == [b"a", b"c", b"b"][:tuples]
    assert result.times is not None
    assert result.times.tolist() == [1, 2, 3][:tuples]
    assert (result.complete, result.timed) == (complete, True)


def test_numbered_tuples_tell_no_rate(orders: Path) -> None:
    numbered = open_source(str(orders), SourceOptions(key="who", event_rate=1000.0))
    assert not first_tuples(numbered, 9, timed=False).timed


def test_no_more_of_a_source_is_read_than_is_wanted(orders: Path) -> None:
    class OneByOne(TableSource):
        handed_on = 0

        def batches(self, tuples: int = 1) -> Iterator[Batch]:
            for batch in super().batches(1):
                self.handed_on += 1
                yield batch

    keys, times = pa.array([b"a", b"b", b"c", b"d"], pa.large_binary()), np.arange(4)
    whole = Batch(columns=pa.table({"who": keys}), keys=keys, times=times)
    source = OneByOne("orders", whole, key="who", time=None, time_unit="ms")
    assert first_columns(source, 2).times.tolist() == [0, 1]
    assert source.handed_on == 2


def test_a_few_times_far_from_the_others_are_set_aside_and_many_are_not(tmp_path: Path) -> None:
    def sampled(far: int) -> Sample:
        path = tmp_path / "times.csv"
        times = [1_800_000_000_000 + 10 * row for row in range(1000)]
        times[:far] = [1_800_000_000 + row for row in range(far)]
        times[-1] = 3_976_000_000_000
        path.write_text("who,at\n" + "\n".join(f"k{row},{time}" for row, time in enumerate(times)))
        options = SourceOptions(key="who", time="at", time_unit="ms")
        return first_tuples(open_source(str(path), options), 1000, timed=True, far_ms=86_400_000)

    few = sampled(3)
    assert few.times is not None
    assert (len(few.keys), few.times.max() - few.times.min()) == (996, 9_950)
    assert [one.tuples for one in few.strays] == [3, 1]
    assert few.strays[0].example.startswith("1970-01-21 ")
    many = sampled(50)
    assert (len(many.keys), many.strays) == (1000, ())
