"""`evenflow replay`, `verify` and `demo` without a broker: what they print beside the work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import producers.replay
import topics.query.waiting
import workbench.verify.views
from cli.main import app
from evenflow.commands.reading import opened
from evenflow.simulation.provenance import program
from producers.replay import ReplaySummary
from tests.unit.workbench.test_views import GOOD
from workbench.demo import DemoOptions
from workbench.demo.options import prepare
from workbench.verify.views import Reports

SENT = ReplaySummary(
    tuples=2,
    per_partition=(2,),
    failed=0,
    unsent=0,
    seconds=1.0,
    ended=True,
    interrupted=False,
    sending="arrays",
)
WARNING = "warning: all 2 tuples have the same time in 't', 2027-01-15 08:00:00 UTC: no slide ever ends."


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file whose rows have one time. No broker is asked for anything."""
    monkeypatch.setattr(topics.query.waiting, "wait_for_input", lambda *some, **words: None)
    monkeypatch.setattr(producers.replay, "replay", lambda *some, **words: SENT)
    monkeypatch.setattr(workbench.verify.views, "verify_all", lambda *some, **words: Reports({"q": GOOD}))
    path = tmp_path / "orders.csv"
    path.write_text("k,t\na,1800000000000\nb,1800000000000\n")
    return str(path)


def test_a_replay_and_a_demo_of_times_that_are_equal_everywhere_doubt_them(
    orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["replay", orders, "--key", "k", "--time", "t"]
    assert CliRunner().invoke(app, words).stderr.count(WARNING) == 1
    assert "warning" not in CliRunner().invoke(app, [*words, "--live"]).stderr, "they become other times"
    numbered = ["replay", orders, "--key", "k", "--event-rate", "10"]
    assert "warning" not in CliRunner().invoke(app, numbered).stderr
    prepare(DemoOptions(input=orders, key="k", time="t"), tmp_path, opened)
    assert WARNING in capsys.readouterr().err


def test_what_verify_and_replay_print_for_programs_says_what_ran(orders: str) -> None:
    for words in (["replay", orders, "--key", "k", "--time", "t"], ["verify"]):
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout.splitlines()[-1])["provenance"] == program()


@pytest.mark.parametrize(("words", "sending"), [([], "arrays"), (["--sending", "calls"], "calls")])
def test_a_replay_hands_records_over_as_the_option_says(
    orders: str, words: list[str], sending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def send(*some: object, **options: Any) -> ReplaySummary:
        asked.append(options["sending"])
        return SENT

    monkeypatch.setattr(producers.replay, "replay", send)
    done = CliRunner().invoke(app, ["replay", orders, "--key", "k", "--time", "t", "--json", *words])
    assert done.exit_code == 0, done.output
    assert asked == [sending]
    assert json.loads(done.stdout.splitlines()[-1])["sending"] == "arrays", "what the summary says"
