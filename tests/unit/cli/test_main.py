import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.main import app, run
from evenflow import console
from evenflow.commands.frame import run_command
from evenflow.errors import ConfigError

HEAVY = ("pyspark", "pyarrow", "numba", "faust", "confluent_kafka", "pydantic", "duckdb")
SERVICES = ("pyspark", "faust", "confluent_kafka", "duckdb", "polars", "pandas", "kubernetes", "textual")
READ_SETTINGS = [
    *([name] for name in ("partition", "aggregate", "combine", "reduce", "control", "verify")),
    *([name] for name in ("doctor", "status", "top", "reset", "results")),
    ["plan", "--workers", "2"],
    ["key", "k"],
    ["query", "check"],
    ["rename", "new"],
    ["replay", "orders.csv"],
    ["skip", "0", "7", "--because", "damaged"],
    ["topics", "list"],
    ["topics", "create"],
    ["topics", "strimzi"],
]
"""The commands that read the settings of a query."""


def test_help_imports_nothing_heavy() -> None:
    code = f"import sys, cli.main; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_a_mistake_in_the_settings_is_said_before_a_service_is_imported(tmp_path: Path) -> None:
    """The imports take the greater part of the time until such a mistake is said."""
    file = tmp_path / "evenflow.toml"
    file.write_text('[query.aggregates]\nn = "no_such(v)"\n')
    code = (
        "import sys; from typer.testing import CliRunner; from cli.main import app\n"
        f"for words in {READ_SETTINGS!r}:\n"
        f"    done = CliRunner().invoke(app, ['--config', {str(file)!r}, *words])\n"
        f"    imported = [name for name in {SERVICES!r} if name in sys.modules]\n"
        "    print(*words, type(done.exception).__name__, imported)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    said = [" ".join((*words, "ConfigError", "[]")) for words in READ_SETTINGS]
    assert done.stdout.splitlines() == said, done.stderr


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["partition", "--partitioner", "pgk"], "unknown partitioner 'pgk'"),
        (["control", "--policy", "treshold"], "unknown policy 'treshold'"),
    ],
)
def test_a_name_that_is_not_there_is_refused_before_a_broker_is_waited_for(
    words: list[str], refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "topics.query.waiting.wait_for_input", lambda *_: pytest.fail("it waited for a broker")
    )
    assert refusal in str(CliRunner().invoke(app, words).exception)


def test_status_asks_for_a_broker_before_it_imports_what_reads_topics(tmp_path: Path) -> None:
    """Without a broker these imports would be the greater part of the time until that is said."""
    code = (
        "import sys; from typer.testing import CliRunner; from cli.main import app\n"
        "done = CliRunner().invoke(app, ['status'])\n"
        "heavy = [name for name in ('pandas', 'polars', 'faust', 'pyspark') if name in sys.modules]\n"
        "print(str(done.exception)[:17], done.exception.at_once, heavy)"
    )
    words = {
        "EVENFLOW_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "EVENFLOW_KAFKA__REQUEST_TIMEOUT": "200ms",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=os.environ | words
    )
    assert done.stdout == "no broker answers True []\n", done.stderr


def test_an_error_at_once_ends_the_process_with_its_words_and_without_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost() -> None:
        error = ConfigError("no broker")
        error.at_once = True
        raise error

    class Gone(BaseException):
        pass

    def gone(status: int) -> None:
        raise Gone(status)

    monkeypatch.setattr("os._exit", gone)
    with pytest.raises(Gone, match="2"):
        run_command(lost)
    assert "error: no broker" in capsys.readouterr().err


def test_every_command_has_help() -> None:
    names = list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert len(names) >= len(console.SERVICES)
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
