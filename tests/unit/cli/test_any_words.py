"""Any words for any command end with status 0, 1 or 2 and a message, never in a traceback, and without a
broker soon.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

from cli.main import app, run
from tests.examples import examples


def _leaves(command: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Every command by its words."""
    inner = getattr(command, "commands", None)
    if not inner:
        return {path: command}
    return {words: leaf for name, one in inner.items() for words, leaf in _leaves(one, (*path, name)).items()}


LEAVES = _leaves(typer.main.get_command(app))
WITHOUT_SETTINGS = {"bench", "broker", "demo", "simulate", "advise", "health", "top"}
"""Commands that run something also without settings. Among their words is one that no command knows."""
OPTIONS = sorted(
    {name for leaf in LEAVES.values() for one in leaf.params for name in one.opts if name[:1] == "-"}
)
WORDS = st.one_of(
    st.sampled_from(OPTIONS).filter(lambda word: word not in ("--config", "-c")),
    st.sampled_from(
        ["0", "1", "-1", "9" * 400, "1e400", "nan", "10s", "-5s", "x", "", "--", "-", "-h", "--help", "a=b",
        "=", "é",
         "\x1b[31m", "key", "/no/such/file", ".", "--no-such-option", "status", "true", "[", "{}", "%s",
         "{0}", "\ud7ff"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
)  # fmt: skip


def ended(words: list[str]) -> tuple[int, str]:
    """Exit status and what was printed, as the shell sees it."""
    out = io.StringIO()
    before, sys.argv = sys.argv, ["evenflow", *words]
    try:
        # A command that ends at once would end the tests' process.
        with (
            patch("os._exit", sys.exit),
            redirect_stdout(out),
            redirect_stderr(out),
            pytest.raises(SystemExit) as caught,
        ):
            run()
    finally:
        sys.argv = before
    code = caught.value.code
    return (0 if code is None else int(code)), out.getvalue()


@given(command=st.sampled_from(sorted(LEAVES)), words=st.lists(WORDS, max_size=5))
@examples(100)
@example(command=("skip",), words=["0", "9" * 400, "--because", "x"])
@example(command=("skip",), words=["-1", "0"])
@example(command=("key",), words=["--base64", "?"])
@example(command=("verify",), words=["--due-within", "1e400"])
@example(command=("topics", "create"), words=["-h"])
def test_any_words_end_in_words(command: tuple[str, ...], words: list[str]) -> None:
    if command[0] in WITHOUT_SETTINGS:
        words = ["--no-such-option", *words]
    status, said = ended(["--config", "/no/such.toml", *command, *words])
    assert status in (0, 1, 2)
    assert said.strip()
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["doctor"], ["status"], ["status", "--json"], ["reset", "--yes"], ["skip", "0", "0", "--because",
        "x"],
        ["rename", "other"], ["key", "a"], ["plan", "--workers", "2"], ["topics", "create"], ["query",
        "check"], ["verify"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_without_a_broker_every_command_ends_by_itself_with_a_message(
    words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "some.toml"
    file.write_text(
        '[query]\nname = "q"\nkey = "k"\ntime = "t"\nwindow = "1s"\naggregates = { n = "count" }\n'
        '[kafka]\nbootstrap_servers = "127.0.0.1:1"\nrequest_timeout = "1s"\nstartup_wait = "1s"\n'
        "[input]\npartitions = 1\n"
    )
    status, said = ended(["--config", str(file), *words])
    assert status in (1, 2)
    assert "127.0.0.1:1" in said
    assert "Traceback" not in said
