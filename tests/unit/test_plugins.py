"""What stands outside evenflow is found by its entry point or as module:Attribute, or refused in words."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.plugins import CALLED_IN, PARTITIONERS, name_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in Python's path. What is imported from it is forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path  # type: ignore[misc]
    for name in set(sys.modules) - before:
        del sys.modules[name]


def module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def package(folder: Path, name: str, **points: str) -> None:
    """What pip leaves of a package that offers these entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{point} = {value}" for point, value in points.items())
    (info / "entry_points.txt").write_text(f"[evenflow.partitioners]\n{lines}\n")


def test_a_class_is_found_as_module_and_name(folder: Path) -> None:
    module(folder, "own_one", "class Mine:\n    class Inner:\n        pass\n")
    mine = PARTITIONERS.load("own_one:Mine")
    assert isinstance(mine, type)
    assert name_of(mine) == "own_one:Mine"
    assert PARTITIONERS.load("own_one:Mine.Inner") is mine.Inner  # type: ignore[attr-defined]


def test_a_package_offers_a_name(folder: Path) -> None:
    module(folder, "own_two", "class Mine:\n    pass\n")
    package(folder, "their-package", mine="own_two:Mine", hashing="own_two:Mine")
    assert PARTITIONERS.names() == ("hashing", "mine")
    assert PARTITIONERS.knows("mine")
    assert PARTITIONERS.load("mine") is PARTITIONERS.load("own_two:Mine")


def test_a_name_of_evenflow_stays_evenflows_and_the_package_is_warned_of_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    package(folder, "bold-package", hashing="own_two:Mine", other="own_two:Mine")
    with caplog.at_level(logging.WARNING):
        assert PARTITIONERS.names(own=["hashing"]) == ("other",)
        assert PARTITIONERS.names(own=["hashing"]) == ("other",)
    assert caplog.text.count("bold-package offers a partitioner 'hashing'") == 1


def test_a_name_that_two_packages_offer_is_refused_with_both(folder: Path) -> None:
    package(folder, "first", twin="a:A")
    package(folder, "second", twin="b:B")
    with pytest.raises(ConfigError, match=r"first and second both offer a partitioner 'twin'"):
        PARTITIONERS.load("twin")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "no package offers a partitioner 'nowhere'"),
        ("no_such_module:Mine", "Python knows no module no_such_module"),
        ("no_such.inner:Mine", "Python knows no module no_such"),
        ("own_bad:Mine", "module own_bad has no Mine"),
        ("own_broken:Mine", r"ZeroDivisionError: division by zero \(.*own_broken.py, line 2\)"),
        ("own_needy:Mine", "ModuleNotFoundError: No module named 'numpy_of_another'"),
        ("own_spelt:Mine", "SyntaxError"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_words(folder: Path, name: str, words: str) -> None:
    module(folder, "own_bad", "class Other:\n    pass\n")
    module(folder, "own_broken", "\n1 / 0\n")
    module(folder, "own_needy", "import numpy_of_another\n")
    module(folder, "own_spelt", "class Mine(:\n")
    with pytest.raises(ConfigError, match=words):
        PARTITIONERS.load(name)


@pytest.mark.parametrize(
    "name", ["hashing", "", ":", "a:", ":b", "a:b:c", "a b:c", "pkg:d=3", "a/b:c", "1:2"]
)
def test_other_names_are_not_taken_for_modules(name: str) -> None:
    assert not PARTITIONERS.knows(name)


def test_a_module_in_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module(tmp_path, "own_here", "class Mine:\n    pass\n")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    monkeypatch.chdir(tmp_path)
    assert PARTITIONERS.load("own_here:Mine").__module__ == "own_here"  # type: ignore[attr-defined]
    del sys.modules["own_here"]


def test_a_module_in_the_folder_that_the_command_was_called_in_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(tmp_path, "own_there", "class Mine:\n    pass\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv(CALLED_IN, str(tmp_path))
    assert PARTITIONERS.load("own_there:Mine").__module__ == "own_there"  # type: ignore[attr-defined]
    assert sys.path[-1] == str(tmp_path), "it hides no other module"
    del sys.modules["own_there"]


def test_a_class_inside_a_function_has_no_name_that_travels() -> None:
    class Inner:
        pass

    with pytest.raises(ConfigError, match="no other process can find it"):
        name_of(Inner)
