"""The notebooks of `examples/notebooks` run as they stand: each code cell in turn, in one namespace."""

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def run(name: str) -> dict[str, Any]:
    """What each code cell shows: the value of its last expression by the cell's id, or None."""
    space: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for cell in json.loads((NOTEBOOKS / name).read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "a notebook is kept without its outputs"
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), name, "exec"), space)
        shown[cell["id"]] = eval(compile(ast.Expression(last.value), name, "eval"), space) if last else None
    return shown


def test_every_notebook_has_its_test() -> None:
    assert [path.name for path in NOTEBOOKS.iterdir()] == ["three_partitioners.ipynb"]


def test_three_partitioners_are_compared_and_drawn() -> None:
    shown = run("three_partitioners.ipynb")
    assert shown["stream"] == 100_000
    hashing, shuffle, evenflow = shown["routing"]
    assert hashing["workers per key"] == 1.0
    assert evenflow["window imbalance"] < hashing["window imbalance"] / 10
    assert evenflow["workers per key"] < shuffle["workers per key"]
    drawn = shown["chart"].to_dict()
    assert [part["encoding"]["x"]["field"] for part in drawn["hconcat"]] == [
        "window imbalance",
        "workers per key",
    ]
