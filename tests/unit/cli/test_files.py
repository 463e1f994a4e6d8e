"""Every command that reads a file takes the same words for it and says the same of it (issue: `data.txt`
read as words).
"""

import json
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from evenflow.errors import ConfigError

COMMANDS = {
    "simulate": ["simulate", "--partitioner", "hashing", "--workers", "4", "--jobs", "1", "--input"],
    "advise": ["advise", "--workers", "4", "--input"],
    "demo": ["demo", "--input"],
    "replay": ["replay"],
}
SAID = "read as CSV with delimiter ' ', no header, columns c0, c1, c2; --format says otherwise"


@pytest.fixture(autouse=True)
def _nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a broker was started before the file was looked at")

    monkeypatch.setattr(import_module("workbench.demo.run"), "EmbeddedBroker", started)
    monkeypatch.setattr(import_module("producers.replay"), "replay", started)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The file of a stranger: three columns parted by spaces, no names, an ending that says text."""
    path = tmp_path / "data.txt"
    path.write_text("".join(f"{'abcdefgh'[row * row % 8]} {row * 100} {row / 8}\n" for row in range(400)))
    return path


def invoke(command: str, *words: str) -> Result:
    return CliRunner().invoke(app, [*COMMANDS[command], *words])


@pytest.mark.parametrize("words", [["--delimiter", " "], ["--format", "csv"], []])
@pytest.mark.parametrize("command", ["simulate", "advise"])
def test_a_file_whose_columns_are_named_is_a_table(command: str, words: list[str], data: Path) -> None:
    done = invoke(command, "data.txt", *words, "--no-header", "--key", "c0", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["keys"] == 3
    assert done.stderr.startswith(f"data.txt: {SAID.partition(';')[0]}")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-header", "--key", "c7", "--time", "c1"], "has no column 'c7'; it has 'c0', 'c1', 'c2'"),
        (["--key", "c0", "--time", "c1"], "has no column 'c0', 'c1'; it has 'a', '0', '0.0'"),
        (["--no-header", "--key", "c0", "--time", "c0"], "the time column 'c0' is 'a' in row 1"),
        (["--format", "words", "--delimiter", " "],
        "is read as words (--format words says so), which takes no --delimiter"),
        (["--format", "json", "--no-header"],
        "is read as json (--format json says so), which takes no --no-header"),
        (["--format", "json", "--key", "c0"], "data.txt: row 1 (a 0 0.0) "),
    ],
)  # fmt: skip
def test_a_mistake_about_the_file_is_named_before_anything_starts(
    command: str, words: list[str], message: str, data: Path
) -> None:
    done = invoke(command, "data.txt", *words)
    assert isinstance(done.exception, ConfigError), done.output
    assert message in done.exception.message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--key", "c0", "--value", "c0"], "the column 'c0' holds values of the type string"),
        (["--key", "c0", "--value", "c9"], "has no column 'c9'"),
        (["--key", "c2"], "the column 'c2' holds values of the type double"),
        (["--key", "c0", "--time-unit", "s"], "--time-unit needs --time"),
    ],
)  # fmt: skip
def test_a_demo_names_a_column_that_does_not_fit_before_its_broker_starts(
    words: list[str], message: str, data: Path
) -> None:
    done = invoke("demo", "data.txt", "--no-header", *words)
    assert isinstance(done.exception, ConfigError), done.output
    assert message in done.exception.message


def test_a_demo_of_a_query_refuses_words_about_a_file() -> None:
    done = CliRunner().invoke(app, ["demo", "--key", "tailnum"])
    assert isinstance(done.exception, ConfigError)
    assert "--key describes a file, but the query 'flights' has data of its own" in done.exception.message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--control", "prompt-plus", "--workers", "3", "--no-header"],
        "--workers, --no-header cannot be said"),
        (["--profile", "sine"], "--profile is of a closed loop"),
    ],
)  # fmt: skip
def test_a_demo_refuses_words_of_its_other_kind(words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["demo", *words])
    assert isinstance(done.exception, ConfigError)
    assert message in done.exception.message


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("delimiter", [";;", "", "é", '"'])
def test_a_delimiter_is_one_character(command: str, delimiter: str, data: Path) -> None:
    done = invoke(command, "data.txt", "--key", "c0", "--delimiter", delimiter)
    assert done.exit_code == 2
    assert "is not one character" in done.output


def test_a_tab_may_be_written_as_backslash_t(tmp_path: Path) -> None:
    Path("o.txt").write_text("a\t1\nb\t2\n")
    done = invoke("simulate", "o.txt", "--delimiter", "\\t", "--no-header", "--key", "c0", "--json")
    assert json.loads(done.stdout)["keys"] == 2


def test_advice_on_one_key_says_that_it_may_be_the_wrong_one(tmp_path: Path) -> None:
    Path("o.csv").write_text("who\n" + "a\n" * 300)
    done = invoke("advise", "o.csv", "--key", "who")
    assert "every tuple has the same key: is it the right key?" in done.stdout
