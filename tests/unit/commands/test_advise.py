"""`evenflow advise` as a person uses it on files; topics are in tests/pipeline/commands/test_advise.py."""

import gzip
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.commands.advise import _settings_for_topic
from evenflow.errors import ConfigError
from evenflow.settings import Settings
from tests.unit.advice.test_advise import FIELDS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """2,000 orders, ten a second, not in order of time; half of them of one customer with a strange name."""
    lines = ["who,at,what"]
    lines += [
        f"{'[red]x' if row % 2 else f'c{row * row % 97}'},{(row ^ 1) * 100},{row}" for row in range(2000)
    ]
    path = tmp_path / "orders.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def invoke(*words: object) -> str:
    result = CliRunner().invoke(app, ["advise", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.stdout


def advice(*words: object) -> dict:
    return json.loads(invoke("--json", *words))


def refusal(*words: object) -> str:
    result = CliRunner().invoke(app, ["advise", *map(str, words)])
    assert result.exit_code != 0
    if isinstance(result.exception, ConfigError):
        return str(result.exception)
    return " ".join(result.output.replace("│", " ").split())


def test_json_has_exactly_the_fields(file: Path) -> None:
    result = advice("--input", file, "--key", "who", "--workers", 4)
    assert list(result) == FIELDS
    assert (result["tuples"], result["workers"], result["rate"], result["seconds"]) == (2000, 4, None, None)
    assert result["hot_keys"][0] == {"key": "[red]x", "key_base64": None, "tuples": 1000, "share": 0.5}
    assert result["window_ms"] is None


def test_times_give_windows_and_a_rate_and_the_capacity_the_workers(file: Path) -> None:
    result = advice(
        "--input", file, "--key", "who", "--time", "at", "--window", "60s", "--slide", "10s", "--capacity", 4
    )
    assert (result["rate"], result["workers"], result["window_tuples"]) == (10, 4, 600)
    assert result["routed_partitions"] == 8
    asked = advice("--input", file, "--key", "who", "--rate", 50, "--capacity", 4)
    assert (asked["rate"], asked["workers"]) == (50, 18)


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """900 orders of thirty customers, latest first: those of c4 are dear, and one lies a year before all
    others.
    """
    lines = ["who,at,ms,plain,note"]
    for row in range(900):
        at = 1_800_000_000_000 - row * 100 - (31_536_000_000 if row == 450 else 0)
        lines.append(f"c{row % 30},{at},{'' if row == 3 else 50.5 if row % 30 == 4 else 1},6,text {row}")
    path = tmp_path / "priced.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_cost_column_is_weighed_and_what_was_changed_is_a_warning(priced: Path) -> None:
    words = ["--input", priced, "--key", "who", "--time", "at", "--time-unit", "ms", "--workers", 4]
    result = advice(*words, "--cost", "ms")
    work = 30 * 50 + 870 - 1  # the stray is no part of the sample
    assert (result["tuples"], result["strays"][0]["tuples"]) == (899, 1)
    assert result["hot_keys"][0] == {"key": "c4", "key_base64": None, "tuples": 30, "share": 1500 / work}
    assert (result["cost"], result["mean_cost"]) == ("ms", work / 899)
    assert result["top_share"] == 1500 / work
    changed = "values of the cost column 'ms' were changed: 30 rounded to whole numbers; 1 below 1 or missing"
    assert any(changed in warning for warning in result["warnings"])
    told = invoke(*words, "--cost", "ms")
    assert 'cost = "ms"' in told
    assert "share of work" in told
    for one in result["candidates"]:
        assert (f" {one['partitioner']} (does not weigh)" in told) == (not one["weighs"])


def test_costs_that_are_all_equal_are_left_out_with_a_warning(priced: Path) -> None:
    words = ["--input", priced, "--key", "who", "--workers", 4]
    result = advice(*words, "--cost", "plain")
    assert "every tuple has the cost 6 in 'plain', so weighing changes nothing" in result["warnings"]
    assert "cost =" not in result["settings"]
    assert list(result) == FIELDS
    assert result["top_share"] == advice(*words)["top_share"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cost", "note"], "the cost column 'note' holds 'text 0', which is not a number"),
        (["--cost", "price"], "has no column 'price'"),
    ],
)
def test_a_column_that_is_no_cost_is_refused(priced: Path, words: list[str], expected: str) -> None:
    assert expected in refusal("--input", priced, "--key", "who", *words)


def test_the_setting_of_a_column_with_a_blank_is_in_quotes(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("who,unit price\n" + "".join(f"c{row % 7},{row % 5}\n" for row in range(300)))
    result = advice("--input", rows, "--key", "who", "--cost", "unit price", "--workers", 2)
    assert tomllib.loads(result["settings"])["partitioner"]["cost"] == '"unit price"'


def test_the_cost_on_the_command_line_is_that_of_the_settings_for_a_topic(tmp_path: Path) -> None:
    path = tmp_path / "evenflow.toml"
    path.write_text("[partitioner]\ncost = 'bytes'\n")
    context: Any = SimpleNamespace(obj=path)
    assert _settings_for_topic(context, None, None, None, None, None).partitioner.cost == "bytes"
    assert _settings_for_topic(context, None, None, None, None, None, "ms * 2").partitioner.cost == "ms * 2"


def test_a_sample_is_the_first_tuples(file: Path) -> None:
    result = advice("--input", file, "--key", "who", "--time", "at", "--sample", 100, "--top", 0)
    assert (result["tuples"], result["seconds"], result["hot_keys"]) == (100, 9.9, [])


def test_numbers_may_be_written_as_simulate_takes_them(file: Path) -> None:
    words = ["--input", file, "--key", "who", "--sample", "1e2", "--workers", "1_0", "--instances", "2e0"]
    result = advice(*words, "--also", "prompt", "--batch", "5e1")
    assert [result[name] for name in ("tuples", "workers", "instances")] == [100, 10, 2]


def test_a_generator_that_never_ends_is_sampled_too() -> None:
    result = advice("--input", "zipf:z=1.4,keys=100", "--key", "key", "--sample", 3000)
    assert result["tuples"] == 3000
    assert result["hot_keys"][0]["key"] == "k0"


def test_people_get_hot_keys_figures_reasons_and_settings(file: Path) -> None:
    shown = invoke("--input", file, "--key", "who", "--workers", 4, "--also", "pkg:d=3")
    for words in (
        "2,000 tuples", "[red]x", "50.00%", "replication", "pkg:d=3", "recommended: ",
        "the selection rule of 004",
        "for evenflow.toml:", "[partitioner]\nname = ", "routed_partitions = 8",
        "# the input topic: 4 partitions",
    ):  # fmt: skip
        assert words in shown, words


def test_what_to_put_into_the_settings_is_taken_by_them(file: Path, tmp_path: Path) -> None:
    from evenflow.partitioners import create
    from evenflow.settings import load_settings

    result = advice(
        "--input", file, "--key", "who", "--time", "at", "--window", "60s", "--slide", "10s", "--workers", 3
    )
    toml = tmp_path / "evenflow.toml"
    toml.write_text(result["settings"])
    settings = load_settings(toml).partitioner
    assert (settings.name, settings.workers, dict(settings.options)) == (
        result["partitioner"], 3, result["options"],
    )  # fmt: skip
    create(settings.name, workers=settings.workers, **settings.options)


def test_the_settings_give_the_workers_where_nobody_does(file: Path, tmp_path: Path) -> None:
    toml = tmp_path / "my.toml"
    toml.write_text("[partitioner]\nworkers = 3\nrouted_partitions = 5\n[input]\npartitions = 7\n")
    words = ["--config", toml, "advise", "--json", "--input", file, "--key", "who"]
    result = CliRunner().invoke(app, list(map(str, words)))
    outcome = json.loads(result.stdout)
    assert [outcome[name] for name in ("workers", "routed_partitions", "input_partitions")] == [3, 5, 7]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--input {file} --key nobody", "has no column 'nobody'; it has 'who', 'at', 'what'"),
        ("--input {file} --key who --time when", "has no column 'when'"),
        ("--input {file}", "which column is the record key?"),
        ("--input {empty} --key who", "empty.csv has no tuples"),
        ("--input {empty} --key who --time at", "empty.csv has no tuples"),
        ("--input /no/such.csv --key who", "there is no file /no/such.csv"),
        ("--input {file} --topic orders", "both say where the sample is"),
        ("--input {file} --key who --oldest", "--oldest is for a topic"),
        ("--no-header", "--no-header is for a file"),
        ("--input {file} --key who --time-unit s", "--time-unit needs --time"),
        ("--input {file} --key who --sample 0", "--sample must be at least 1, not 0"),
        ("--input {file} --key who --batch 0", "batch must be at least 1, not 0"),
        ("--input {file} --key who --sample 1.5", "'1.5' is not a whole number"),
        ("--input {file} --key who --workers 0", "workers must be at least 1"),
        ("--input {file} --key who --workers 4 --capacity 5", "both say how many workers"),
        ("--input {file} --key who --capacity 5", "a capacity tells nothing without a rate"),
        ("--input {file} --key who --window soon", "--window: 'soon' is not a duration"),
        ("--input {file} --key who --window 10s --slide 3s", "does not divide the window"),
        ("--input {file} --key who --time at --slide 0s", "slide_ms must be at least 1, not 0"),
        ("--input {file} --key who --window 0s", "window_ms must be at least 1, not 0"),
        ("--input {file} --key who --also promt", "did you mean 'prompt'"),
        ("--input {file} --key who --tolerance -1", "tolerance must be at least 0"),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong(
    words: str, message: str, file: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("who,at\n")
    assert message in refusal(*words.format(file=file, empty=empty).split())


def test_another_key_on_a_topic_takes_the_types_of_the_old_one_away(tmp_path: Path) -> None:
    config = tmp_path / "evenflow.toml"
    config.write_text(
        '[query]\nkey = ["day", "shop"]\ntypes = { day = "date", shop = "int64", price = "decimal(2)" }\n'
        '[query.aggregates]\ntotal = "sum(price)"\n'
    )
    context: Any = SimpleNamespace(obj=config)

    def keyed(key: str | None) -> Settings:
        return _settings_for_topic(context, None, key, None, None, None)

    assert keyed(None).query.key_columns == ("day", "shop")
    assert (keyed("city").query.key_columns, keyed("city").query.types) == (
        ("city",),
        {"price": "decimal(2)"},
    )
    assert keyed("city, shop").query.types == {"shop": "int64", "price": "decimal(2)"}
    with pytest.raises(
        ConfigError, match=r"^--key 'price' does not fit the query: key column 'price' cannot be decimal"
    ):
        keyed("price")
