"""`evenflow health`: for containers' health checks."""

from __future__ import annotations

from typer.testing import CliRunner

from cli.main import app
from evenflow.settings import load_settings
from monitoring.health import Checks
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served


def test_a_part_that_is_well_is_0_and_one_that_is_not_is_1_with_the_reason() -> None:
    said = [Checks()]
    instruments = SparkInstruments(load_settings(query={"name": "q"}))
    runner = CliRunner()
    with served(instruments, "127.0.0.1", 0, setting="x", health=lambda: said[0]) as port:
        words = ["health", f"http://127.0.0.1:{port}/healthy/"]
        assert runner.invoke(app, words).exit_code == 0
        said[0] = Checks(unhealthy="it stands still")
        refused = runner.invoke(app, words)
        assert (refused.exit_code, refused.stderr) == (1, "503: it stands still\n")
    gone = runner.invoke(app, words)
    assert gone.exit_code == 1
    assert f"no answer from {words[1]}" in gone.stderr
