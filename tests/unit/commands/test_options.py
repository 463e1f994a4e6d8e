"""What every command takes may stand before its name or behind it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli.main import app, run
from evenflow.commands.logs import configure

GROUP: Any = typer.main.get_command(app)
REQUIRED = {
    "workers": ["--workers", "2"],
    "partition": ["0"],
    "offset": ["7"],
    "because": ["--because", "x"],
    "rate": ["--rate", "1M"],
    "keys": ["--keys", "1e6"],
    "delay": ["--delay", "5s"],
}


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    names = ["partitioner_service", "evenflow.spark", "evenflow.kafka", "faust", "mode", "aiokafka", "py4j"]
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def context_of(command: str, before: list[str], behind: list[str]) -> Any:
    """The context in which the command would have run."""
    wanted = [p for p in GROUP.commands[command].params if p.required]
    needed = [word for p in wanted for word in REQUIRED.get(p.name, ["x"])]
    if hasattr(GROUP.commands[command], "commands"):
        needed = [next(iter(GROUP.commands[command].commands))]
    group = GROUP.make_context("evenflow", [*before, command])
    with group:
        GROUP.callback(**group.params)
        return GROUP.commands[command].make_context(command, [*behind, *needed], parent=group)


@pytest.mark.parametrize("command", sorted(GROUP.commands))
@pytest.mark.parametrize("side", ["before", "behind", "both"])
def test_every_command_takes_them_before_its_name_and_behind_it(command: str, side: str) -> None:
    words = ["--config", "mine.toml", "--json-logs", "--quiet"]
    ways = {"before": (words, []), "behind": ([], words), "both": (words[:2], words[2:])}
    context = context_of(command, *ways[side])
    assert context.obj == Path("mine.toml")
    assert "json_logs" not in context.params
    assert type(logging.getLogger().handlers[0].formatter).__name__ == "JsonLines"
    assert logging.getLogger("partitioner_service").level == logging.WARNING


def test_no_command_has_an_option_of_its_own_by_that_name() -> None:
    for name, command in GROUP.commands.items():
        words = [word for param in command.params for word in getattr(param, "opts", [])]
        assert len(words) == len(set(words)), name


def test_what_stands_behind_wins_and_contradictions_are_refused() -> None:
    assert context_of("doctor", ["-c", "a.toml"], ["-c", "b.toml"]).obj == Path("b.toml")
    for words in (["--quiet", "doctor", "--verbose"], ["doctor", "--quiet", "--verbose"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert "exclude each other" in result.output


def test_our_services_talk_unless_told_to_be_quiet_and_clients_only_when_told_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(**how: bool) -> list[str]:
        configure(**{"quiet": False, "verbose": False, "as_json": False} | how)
        for name in ("partitioner_service.kafka.source", "evenflow.spark", "faust", "other"):
            logging.getLogger(name).info("from %s", name)
        logging.getLogger("partitioner_service").warning("careful")
        captured = capsys.readouterr()
        assert captured.out == "", "standard output belongs to results"
        return captured.err.splitlines()

    assert [line.partition(" INFO ")[2] for line in said()[:2]] == [
        "from partitioner_service.kafka.source",
        "from evenflow.spark",
    ]
    assert len(said()) == 3
    assert [line.rpartition(" ")[2] for line in said(quiet=True)] == ["careful"]
    assert len(said(verbose=True)) == 5
    assert [json.loads(line)["message"] for line in said(as_json=True)][-1] == "careful"


def test_with_json_logs_an_error_is_a_line_of_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["evenflow", "doctor", "--json-logs", "-c", "/no/such.toml"])
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    shown = json.loads(line)
    assert (shown["level"], shown["message"]) == ("ERROR", "there is no settings file /no/such.toml")
    assert shown["hint"].startswith("name an existing file")
