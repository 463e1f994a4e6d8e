"""`evenflow size` as a person uses it."""

import json

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError

WORDS = ["size", "--rate", "10M", "--workers", "1000", "--keys", "1e7", "--delay", "5s"]


def test_the_example_of_the_page_says_sizes_settings_and_what_breaks() -> None:
    done = CliRunner().invoke(app, WORDS)
    assert done.exit_code == 0, done.output
    for words in (
        "partitioner instances",
        "What breaks first",
        "[partitioner]",
        "StatefulSet",
        "off by a factor",
    ):
        assert words in done.output


def test_json_has_the_same_with_its_provenance() -> None:
    done = CliRunner().invoke(app, [*WORDS, "--json"])
    result = json.loads(done.output)
    assert result["fits"] is True
    assert result["demand"]["rate"] == 1e7
    assert result["breaks"][0]["times"] > 1
    assert {"version", "commit", "cpu", "cores", "unit_costs"} <= set(result["provenance"])
    assert result["provenance"]["unit_costs_measured_on"]["cores"] == 2


def test_what_does_not_fit_ends_with_status_1() -> None:
    done = CliRunner().invoke(app, [*WORDS[:-1], "600ms"])
    assert done.exit_code == 1
    assert "DOES NOT FIT" in done.output


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--rate", "0", "rate must be more than 0"),
        ("--rate", "10X", "'10X' is not a number"),
        ("--rate", "ten", "'ten' is not a number"),
        ("--rate", "inf", "'inf' is not a"),
        ("--keys", "1.5", "'1.5' is not a whole number"),
        ("--delay", "5", "'5' is not a duration"),
        ("--rate", "10", "1,000 workers for 10 tuples a second"),
    ],
)
def test_a_slip_is_named(option: str, text: str, words: str) -> None:
    changed = list(WORDS)
    changed[changed.index(option) + 1] = text
    done = CliRunner().invoke(app, changed)
    assert isinstance(done.exception, ConfigError)
    assert words in done.exception.message
