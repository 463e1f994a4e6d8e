"""A partitioner of one's own is named, made, restored and refused as one of evenflow's."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners import PlainPartitioner, create, describe, names, restore
from evenflow.partitioners.catalogue import algorithms_markdown
from evenflow.partitioners.registry import tells
from evenflow.partitioners.simple.hashing import Hashing
from evenflow.settings import load_settings
from tests.outside import forgotten, module, package
from tests.unit.partitioners.streams import zipf

GROUP = "evenflow.partitioners"
OWN = '''
"""The lighter of two workers."""
from pydantic import Field
from evenflow.partitioners import Options, PlainPartitioner
class Candidates(Options):
    d: int = Field(default=2, ge=1, description="Workers that a key may have.")
class Lighter(PlainPartitioner):
    """The lighter of a key's workers."""
    options_type = Candidates
    def start(self):
        self.loads = [0] * self.workers
    def route_one(self, key, time_ms):
        places = [(key >> 7 * turn) % self.workers for turn in range(self.options.d)]
        worker = min(places, key=self.loads.__getitem__)
        self.loads[worker] += 1
        return worker
    def get_state(self):
        return self.loads
    def set_state(self, state):
        self.loads = state
class Silent(PlainPartitioner):
    def route_one(self, key, time_ms):
        return key % self.workers
class Abstract(PlainPartitioner):
    pass
class Other:
    pass
class Needy(Options):
    d: int
class Demanding(Silent):
    options_type = Needy
class Clumsy(Silent):
    def __init__(self, **words):
        raise KeyError("colour")
def function():
    pass
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in Python's path that holds the module `own`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module(tmp_path, "own", OWN)
    with forgotten(tmp_path):
        yield tmp_path


class Local(PlainPartitioner):
    """By the key alone."""

    def route_one(self, key: int, time_ms: int) -> int:
        return key % self.workers


def test_a_class_is_made_by_its_module_and_keeps_the_name_as_it_was_written(folder: Path) -> None:
    p = create("own:Lighter", workers=4, d=3)
    assert repr(p) == "Lighter(workers=4, seed=7, d=3)"
    keys, times = zipf(2000)
    out = p.assign(keys, times)
    assert set(out.tolist()) == {0, 1, 2, 3}
    assert p.observe().name == "own:Lighter"
    assert restore(p.snapshot()).assign(keys, times).tolist() == p.assign(keys, times).tolist()


def test_the_class_itself_is_taken_for_its_name() -> None:
    assert create(Local, workers=3).name == f"{__name__}:Local"
    assert create(Hashing, workers=3).name == "hashing"
    with pytest.raises(ConfigError, match="derived from Partitioner"):
        create(dict, workers=3)  # type: ignore[arg-type]


def test_a_package_offers_a_partitioner_that_stands_in_lists_with_the_package(folder: Path) -> None:
    package(folder, "their-package", GROUP, lighter="own:Lighter", hashing="own:Lighter")
    assert names()[-1] == "lighter"
    assert names().count("hashing") == 1
    assert describe("hashing").package is None
    assert describe("lighter").package == "their-package"
    assert create("lighter", workers=2).name == "lighter"
    shown = CliRunner().invoke(app, ["partitioners"])
    assert "(their-package) The lighter of a key's workers." in shown.output
    said = CliRunner().invoke(app, ["partitioners", "--json"]).output.splitlines()[-1]
    assert json.loads(said)["package"] == "their-package"
    assert "## lighter\n\nThe lighter of two workers." in algorithms_markdown()


def test_a_package_that_is_broken_does_not_break_the_list(folder: Path) -> None:
    package(folder, "bold-package", GROUP, bold="nowhere:Bold")
    shown = CliRunner().invoke(app, ["partitioners"])
    assert shown.exit_code == 0
    assert "(bold-package) It cannot be used: the partitioner 'bold' is not there" in shown.output


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own:Other", "own:Other is no partitioner: its class is not derived from Partitioner"),
        ("own:function", "own:function is no partitioner: it is no class but a function"),
        ("own:Abstract", "own:Abstract is no whole partitioner: it lacks route_one"),
        ("own:Demanding", "the option 'd' of own:Demanding has no default"),
        ("own:Clumsy", r"no own:Clumsy can be made: KeyError: 'colour' \(.*own.py, line \d+\)"),
        ("own:Nobody", "module own has no Nobody"),
        ("nowhere:Mine", "Python knows no module nowhere"),
        ("pkg:d", "pkg: 'd' is no option"),
        ("pgk", "unknown partitioner 'pgk'; did you mean 'pkg'"),
    ],
)
def test_what_is_no_partitioner_is_refused_in_words(folder: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        create(name, workers=2)


def test_an_unknown_option_of_it_is_refused_with_the_nearest(folder: Path) -> None:
    with pytest.raises(ConfigError, match="unknown option 'dd' of own:Lighter; did you mean 'd'"):
        create("own:Lighter", workers=2, dd=1)


def test_a_class_without_a_docstring_is_described(folder: Path) -> None:
    assert describe("own:Silent").summary == "It does not say what it does."


def test_a_snapshot_never_makes_a_module_be_imported(folder: Path) -> None:
    foreign = create("own:Lighter", workers=4).snapshot()
    del sys.modules["own"]
    with pytest.raises(IncompatibleStateError, match="whose module is not imported"):
        restore(foreign)
    with pytest.raises(IncompatibleStateError, match="other values of name: 'own:Lighter'"):
        restore(foreign, like=create("hashing", workers=4))
    assert "own" not in sys.modules
    assert restore(foreign, like=create("own:Lighter", workers=4)).name == "own:Lighter"


def test_settings_take_the_name_and_an_unknown_one_exchanges_nothing(folder: Path) -> None:
    settings = load_settings(
        query={"name": "q", "aggregates": {"n": "count"}},
        partitioner={"name": "own:Lighter", "options": {"d": 3}, "instances": 2},
    )
    assert settings.partitioner.name == "own:Lighter"
    assert not settings.exchanges
    assert not tells("own:Lighter")


def test_spawned_processes_find_the_class_by_themselves(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "--tuples", "5000", "--workers", "4", "--jobs", "2", "--json"]
    chosen = ["--partitioner", "own:Lighter", "--partitioner", "own:Lighter:d=3"]
    done = CliRunner().invoke(app, [*words, *chosen])
    rows = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    assert [row["partitioner"] for row in rows] == ["own:Lighter", "own:Lighter:d=3"]
    assert done.output.count("plain Python") == 1


def test_a_sweep_and_an_advice_take_the_name_where_a_name_goes(folder: Path) -> None:
    table, records = folder / "sweep.csv", folder / "records.csv"
    grid = ["--workers", "4", "--seeds", "1", "--tuples", "2000", "--keys", "100", "--jobs", "1"]
    swept = CliRunner().invoke(
        app, ["sweep", "--output", str(table), "--partitioner", "own:Lighter:d=3", *grid]
    )
    assert swept.exit_code == 0, swept.output
    (row,) = csv.DictReader(table.open())
    assert (row["partitioner"], json.loads(row["options"])) == ("own:Lighter:d=3", {"d": 3})

    records.write_text("k\n" + "".join(f"{key % 37}\n" for key in range(2_000)))
    words = ["--input", str(records), "--key", "k", "--workers", "4", "--json"]
    advised = CliRunner().invoke(app, ["advise", *words, "--also", "own:Lighter"])
    assert advised.exit_code == 0, advised.output
    candidates = json.loads(advised.stdout)["candidates"]
    assert "own:Lighter" in [one["partitioner"] for one in candidates]


def plain(monkeypatch: pytest.MonkeyPatch, **methods: Callable) -> PlainPartitioner:
    """A partitioner with these methods, by the key alone where they say nothing else."""
    made = type("Patched", (Local,), {"__module__": __name__, "__qualname__": "Patched", **methods})
    monkeypatch.setattr(sys.modules[__name__], "Patched", made, raising=False)
    p = create(made, workers=4)
    assert isinstance(p, PlainPartitioner)
    return p


def route(p: PlainPartitioner, *times: int) -> list[int]:
    return p.assign(np.arange(len(times), dtype=np.uint64), np.array(times, np.int64)).tolist()


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        (4, "gave 4 for key 0: no worker from 0 to 3"),
        (-1, "gave -1 for key 0"),
        (True, "gave True for key 0"),
        (1.0, "gave 1.0 for key 0"),
        (None, "gave None for key 0"),
    ],
)
def test_a_worker_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, worker: object, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        route(plain(monkeypatch, route_one=lambda self, key, time_ms: worker), 0)


def test_a_mistake_in_it_is_told_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    p = plain(monkeypatch, route_one=lambda self, key, time_ms: 1 // 0)
    with pytest.raises(
        ConfigError, match=r"failed with key 0 at time 5: ZeroDivisionError.*test_outside.py, line"
    ):
        route(p, 5)


def test_what_it_remembers_without_saving_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="remembers turn, and has no get_state"):
        plain(monkeypatch, start=lambda self: setattr(self, "turn", 0))
    with pytest.raises(ConfigError, match="has one of get_state and set_state"):
        plain(monkeypatch, get_state=lambda self: [])

    def later(self: PlainPartitioner, key: int, time_ms: int) -> int:
        self.turn = key
        return 0

    p = plain(monkeypatch, route_one=later)
    route(p, 0)
    with pytest.raises(ConfigError, match="remembers turn"):
        p.snapshot()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"a": {1: 2}}, "a dict with the key 1"),
        ([{1, 2}], r"has \{1, 2\}, which JSON cannot hold"),
        (float("nan"), "has nan"),
    ],
)
def test_a_state_that_json_would_change_is_refused(
    monkeypatch: pytest.MonkeyPatch, state: object, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        plain(monkeypatch, get_state=lambda self: state, set_state=lambda self, state: None).snapshot()


def test_its_time_never_falls_across_blocks_and_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    p = plain(monkeypatch, route_one=lambda self, key, time_ms: time_ms % 4)
    assert route(p, 1, 3, 2) == [1, 3, 3]
    assert route(p, 2, 6) == [3, 2]
    assert route(restore(p.snapshot(), like=p), 1) == [2]
    assert p.explain(9, now=7).workers == (3,)
    assert p.explain(9).workers == (2,)


def test_a_state_that_it_refuses_is_no_state_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: PlainPartitioner, state: object) -> None:
        raise AssertionError("odd")

    p = plain(monkeypatch, get_state=lambda self: 1, set_state=refuse)
    with pytest.raises(IncompatibleStateError, match="set_state refuses it: AssertionError: odd"):
        restore(p.snapshot(), like=p)


def test_how_much_it_can_grow_is_its_own_to_say() -> None:
    with pytest.raises(ConfigError, match="does not say how much its state can grow"):
        create(Local, workers=2).state_bound(10)


def test_a_kernel_that_leaves_the_range_is_refused_before_anything_is_counted_there() -> None:
    p = create(Hashing, workers=4)
    p._assign = lambda block: block.out.fill(4)  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="sent tuple 0 of the stream to worker 4"):
        p.assign(*zipf(10))


def test_options_behind_a_name_are_those_beside_it_and_in_both_places_they_are_refused(folder: Path) -> None:
    made = create("own:Lighter:d=3", workers=4)
    assert made.name == "own:Lighter"
    assert made.options == create("own:Lighter", workers=4, d=3).options
    with pytest.raises(ConfigError, match=r"'own:Lighter:d=3' has options behind its name \(d\)"):
        create("own:Lighter:d=3", workers=4, d=3)
