"""Snapshots that were made before options got the names that they have now.

`former_snapshots.zip` was written by evenflow as of commit 16b6621: snapshots of each partitioner with an option that has
another name since, after half of a stream, and the workers of the other half.
"""

import json
import zipfile
from pathlib import Path

import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners import create, restore
from evenflow.partitioners.snapshots import pack, unpack
from tests.unit.partitioners.cases import run
from tests.unit.partitioners.streams import zipf

with zipfile.ZipFile(Path(__file__).with_name("former_snapshots.zip")) as _kept:
    SNAPSHOTS = {
        n.removesuffix(".snapshot"): _kept.read(n) for n in _kept.namelist() if n.endswith(".snapshot")
    }
    MADE = {label: json.loads(_kept.read(f"{label}.json")) for label in SNAPSHOTS}


SPLIT_ANEW = [label for label, made in MADE.items() if made["name"] == "evenflow"]
"""Snapshots of one of two sources of `evenflow`, which watch more keys now."""


@pytest.mark.parametrize("label", sorted(SNAPSHOTS.keys() - set(SPLIT_ANEW)))
def test_a_snapshot_with_former_names_of_options_is_restored_and_goes_on_as_it_would_have(label: str) -> None:
    restored = restore(SNAPSHOTS[label])
    assert restored.name == MADE[label]["name"]
    keys, times = zipf(600)
    assert run(restored, (keys[300:], times[300:] * 3)).tolist() == MADE[label]["workers"]


@pytest.mark.parametrize("label", SPLIT_ANEW)
def test_a_snapshot_of_a_source_that_watched_fewer_keys_is_refused_with_what_to_do(label: str) -> None:
    with pytest.raises(IncompatibleStateError, match="does not fit the evenflow of this evenflow") as caught:
        restore(SNAPSHOTS[label])
    assert caught.value.hint is not None
    assert "start from an empty state" in caught.value.hint


def test_a_snapshot_with_former_names_is_taken_where_one_of_the_same_make_is_wanted() -> None:
    label = next(
        k for k, made in MADE.items() if made["name"] == "pkg" and made["options"]["load"] == "windowed"
    )
    sliding = {"window": "sliding", "window_ms": 1000, "slide_ms": 100}
    assert (
        restore(SNAPSHOTS[label], like=create("pkg", workers=4, source=1, sources=2, **sliding)).workers == 4
    )


def test_an_option_that_a_snapshot_lacks_has_its_default() -> None:
    p = create("dalton", workers=4)
    header, state = unpack(p.snapshot())
    former = {name: value for name, value in header["options"].items() if name != "sketch_from"}
    assert len(former) < len(header["options"])
    snapshot = pack({**header, "options": former}, state)
    assert restore(snapshot, like=p).options == p.options
    with pytest.raises(IncompatibleStateError, match="other values of options"):
        restore(snapshot, like=create("dalton", workers=4, sketch_from=5))


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("pkg", {"load": "windowed"}, "write window=sliding"),
        ("cm", {"mode": "tumbling"}, "write window=tumbling"),
        ("pkg", {"load": "x"}, "write window=, one of: cumulative, sliding"),
        ("pkg", {"load": ["x"]}, "write window=, one of: cumulative, sliding"),
        ("evenflow", {"buckets": 64}, "write cells=64"),
        ("evenflow", {"most_buckets": 64}, "write most_cells=64"),
    ],
)
def test_a_former_option_is_refused_with_what_to_write_today(name: str, options: dict, hint: str) -> None:
    with pytest.raises(ConfigError, match=r"is called (window|cells|most_cells) now") as caught:
        create(name, workers=4, **options)
    assert caught.value.hint == hint


def test_an_option_of_another_partitioner_is_not_taken_for_a_former_one() -> None:
    with pytest.raises(ConfigError, match="hashing has no options"):
        create("hashing", workers=4, load="windowed")
