"""The key of a cached kernel covers everything the kernel is made of, and is the same in every process."""

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from evenflow.numeric.kernels import _NamedByKey, fingerprint
from evenflow.partitioners.choices import d_choices
from evenflow.partitioners.evenflow import frequent
from evenflow.partitioners.evenflow import route as water_filling_route
from evenflow.sketches import eight_wide as eights
from evenflow.sketches import space_saving

ROOT = Path(__file__).parents[2]
KERNELS: dict[str, Any] = {"evenflow": water_filling_route.route, "d-choices": d_choices._route}


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_same_in_another_process(name: str) -> None:
    module = KERNELS[name].py_func.__module__
    script = (
        f"from evenflow.numeric.kernels import fingerprint; import {module} as m; "
        f"print(fingerprint(m.{KERNELS[name].py_func.__name__}.py_func))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == fingerprint(KERNELS[name].py_func)


def test_it_changes_with_a_kernel_in_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(d_choices._route.py_func)
    monkeypatch.setattr(d_choices, "offered_is_head", space_saving.find)
    assert fingerprint(d_choices._route.py_func) != before


def test_it_changes_with_a_constant_that_a_kernel_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(water_filling_route.route.py_func)
    monkeypatch.setattr(frequent, "WAYS", 16)
    assert fingerprint(water_filling_route.route.py_func) != before


@pytest.mark.parametrize("name", ["WIDTH", "_load"])
def test_it_changes_with_what_vector_code_is_made_of(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def other() -> None:
        """Stands for code that was changed."""

    before = fingerprint(water_filling_route.route.py_func)
    assert isinstance(other, FunctionType)
    monkeypatch.setattr(eights, name, 4 if name == "WIDTH" else other)
    assert fingerprint(water_filling_route.route.py_func) != before


_OUTER = """
from evenflow.numeric.kernels import kernel
from inner import Pair, pick

@kernel
def whole(pair):
    return pair.x * 100 + pick(pair)

print(whole(Pair(x=1, y=2)))
"""
_INNER = """
from typing import NamedTuple
from evenflow.numeric.kernels import inlined

class Pair(NamedTuple):
    {first}: int
    {second}: int

@inlined
def pick(pair):
    return pair.{picked}
"""


def test_it_changes_with_the_field_that_a_kernel_reads_and_with_the_order_of_fields(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(_OUTER)
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    result = []
    for first, second, picked in (("x", "y", "x"), ("x", "y", "y"), ("y", "x", "y")):
        (tmp_path / "inner.py").write_text(_INNER.format(first=first, second=second, picked=picked))
        made = subprocess.run(
            [sys.executable, "-B", "outer.py"],
            cwd=tmp_path,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=True,
        )
        result.append(made.stdout.strip())
    assert result == ["101", "102", "102"]


def test_an_index_with_types_that_are_no_more_is_an_empty_one(tmp_path: Path) -> None:
    """Numba reads the index of an older source before it sees that it is older."""
    gone = type("Gone", (), {"__module__": "evenflow.gone"})
    module = ModuleType("evenflow.gone")
    module.Gone = gone  # type: ignore[attr-defined]
    sys.modules["evenflow.gone"] = module
    try:
        _NamedByKey(str(tmp_path), "kernel", "stamp").save(gone(), "code")  # type: ignore[no-untyped-call]
    finally:
        del sys.modules["evenflow.gone"]
    again = _NamedByKey(str(tmp_path), "kernel", "stamp")  # type: ignore[no-untyped-call]
    assert again.load("key") is None  # type: ignore[no-untyped-call]
    again.save("key", "code")
    assert again.load("key") == "code"  # type: ignore[no-untyped-call]


def test_two_processes_that_compile_two_forms_at_once_never_get_each_others_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs, reader = (_NamedByKey(str(tmp_path), "kernel", "stamp") for _ in range(3))
    write = ours._save_data

    def late(*form: Any) -> None:
        theirs.save("their signature", "their code")
        write(*form)

    monkeypatch.setattr(theirs, "_load_index", dict)  # both have looked before either wrote
    monkeypatch.setattr(ours, "_save_data", late)
    ours.save("our signature", "our code")
    result = reader.load("our signature"), reader.load("their signature")
    assert result[0] in ("our code", None), "what is lost is compiled again"
    assert result[1] in ("their code", None)
    monkeypatch.undo()
    ours.save("our signature", "our code")
    theirs.save("their signature", "their code")
    assert (reader.load("our signature"), reader.load("their signature")) == ("our code", "their code")


_PROBE = """
import sys, tempfile
import pyarrow as pa

def refused(**_):
    raise PermissionError("read-only")

if "read-only" in sys.argv:
    tempfile.TemporaryFile = refused  # by which numba finds out whether it may write into a folder
from evenflow.keys import _hash_all as kernel, hash_keys
hash_keys(pa.array([b"a", b"b"], pa.binary()))
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def test_a_cache_that_an_image_brought_is_read_where_nobody_may_write(tmp_path: Path) -> None:
    def run(*words: str) -> list[int]:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, *words],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        return [int(word) for word in done.stdout.split()]

    assert run() == [0, 1], "compiled, and kept"
    before = sorted(tmp_path.rglob("*"))
    assert run("read-only") == [1, 0], "found"
    assert sorted(tmp_path.rglob("*")) == before
