"""`evenflow results --schema` shows what a sink registers, and says which sinks do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from evenflow.errors import ConfigError
from spark_consumers.sinks import RowsSink


class Registering(RowsSink):
    """A sink of one's own whose rows have a schema."""

    name = "registering"
    repeats = False

    def write(self, rows: object, batch: int, settings: object) -> None:
        raise AssertionError("no test here writes")

    def registered_schema(self, settings: object) -> tuple[str, str]:
        return "own-value", '{"type":"record"}'


def _results_schema(folder: Path, sink: str) -> Result:
    file = folder / "evenflow.toml"
    file.write_text(
        '[query]\nname = "q"\nkey = "k"\n[input]\npartitions = 1\n'
        f'[results]\nsink = "{sink}"\npath = "{folder}/rows"\n'
    )
    return CliRunner().invoke(app, ["--config", str(file), "results", "--schema"])


def test_a_sink_of_ones_own_shows_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_schema_of_a_test")
    module.SINK = Registering()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    shown = _results_schema(tmp_path, "own_schema_of_a_test:SINK")
    assert shown.exit_code == 0, shown.exception
    assert "own-value" in shown.stderr
    assert json.loads(shown.stdout) == {"type": "record"}


def test_a_sink_that_registers_no_schema_is_told_which_do(tmp_path: Path) -> None:
    refused = _results_schema(tmp_path, "parquet")
    assert isinstance(refused.exception, ConfigError)
    assert "'parquet' registers none" in refused.exception.message
    assert "'avro', or a sink of your own" in (refused.exception.hint or "")
