"""The image of the tools has no Spark: what they import must not want it."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import spark_consumers.sinks
import workbench.assist.status
import workbench.lifetime
import workbench.verify

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (workbench.verify, workbench.assist.status, workbench.lifetime, spark_consumers.sinks)
    for module in pkgutil.iter_modules(package.__path__)
]
COMMANDS = [f"cli.{name}" for name in ("replay", "verify", "topics", "status", "doctor", "reset", "rename")]


@pytest.mark.parametrize("names", [MODULES, COMMANDS], ids=["rooms", "commands"])
def test_the_tools_import_no_spark(names: list[str]) -> None:
    code = (
        "import sys; sys.modules.update(pyspark=None, py4j=None)\n"
        f"from importlib import import_module\nfor name in {names}: import_module(name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert done.returncode == 0, done.stderr[-2000:]
