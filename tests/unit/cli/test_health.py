"""`evenflow health`: for containers' health checks."""

from __future__ import annotations

from pathlib import Path

import trustme
from typer.testing import CliRunner

from cli.main import app
from evenflow.settings import WebSettings, load_settings
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


def test_a_part_that_speaks_tls_on_this_machine_is_asked_without_an_authority(tmp_path: Path) -> None:
    own = trustme.CA().issue_cert("pages.example")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    web = WebSettings(tls_certificate=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")
    instruments = SparkInstruments(load_settings(query={"name": "q"}))
    with served(instruments, "127.0.0.1", 0, setting="x", health=Checks, web=web) as port:
        asked = CliRunner().invoke(app, ["health", f"https://127.0.0.1:{port}/healthy/"])
    assert asked.exit_code == 0, asked.stderr
