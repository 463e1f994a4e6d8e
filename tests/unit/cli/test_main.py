import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.main import COMMANDS, app, run
from evenflow.errors import ConfigError

HEAVY = ("pyspark", "pyarrow", "numba", "faust", "confluent_kafka", "pydantic", "duckdb")


def test_help_imports_nothing_heavy() -> None:
    code = f"import sys, cli.main; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_every_command_has_help() -> None:
    names = list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert len(names) >= len(COMMANDS)
    for name in names:
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0, name
        assert len(result.output) > 100


def test_an_error_of_ours_is_a_message_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["evenflow", "--config", "/no/such.toml", "doctor"])
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: there is no settings file /no/such.toml\n  -> ")


def test_an_error_may_bring_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Special(ConfigError):
        exit_code = 9

    def fails() -> None:
        raise Special("no")

    monkeypatch.setattr("cli.main.app", fails)
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 9


def test_ctrl_c_ends_with_130_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.main.app", interrupted)
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 130


def test_settings_are_printed_as_text_and_as_json() -> None:
    text = CliRunner().invoke(app, ["settings"])
    assert "query.window" in text.output
    listed = json.loads(CliRunner().invoke(app, ["settings", "--json"]).stdout)
    assert {"name", "kind", "default", "description", "variable"} <= set(listed[0])
