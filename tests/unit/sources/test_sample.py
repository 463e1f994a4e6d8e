"""Which tuples of a source are its sample."""

from pathlib import Path

import pytest

from evenflow.sources.datasets import open_source
from evenflow.sources.sample import first_tuples
from evenflow.sources.source import SourceOptions


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("who,at\nb,3\na,1\nc,2\n")
    return path


@pytest.mark.parametrize(("tuples", "complete"), [(2, False), (3, True), (9, True)])
def test_a_file_gives_its_earliest_tuples(orders: Path, tuples: int, complete: bool) -> None:
    found = first_tuples(open_source(str(orders), SourceOptions(key="who", time="at")), tuples, timed=True)
    assert found.keys.to_pylist() == [b"a", b"c", b"b"][:tuples]
    assert found.times is not None
    assert found.times.tolist() == [1, 2, 3][:tuples]
    assert (found.complete, found.timed) == (complete, True)


def test_numbered_tuples_tell_no_rate(orders: Path) -> None:
    numbered = open_source(str(orders), SourceOptions(key="who", event_rate=1000.0))
    assert not first_tuples(numbered, 9, timed=False).timed
