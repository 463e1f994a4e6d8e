"""`evenflow simulate` as a person uses it."""

import gzip
import json
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.commands.simulate import simulate
from evenflow.errors import ConfigError
from evenflow.partitioners import create, names
from evenflow.simulation import STREAMS
from tests.unit.simulation.test_figures import FIELDS

COUNTING = next(name for name in names() if not create(name, workers=2).takes_costs)
"""A partitioner that does not weigh tuples."""
SMALL = ["--tuples", "4e3", "--keys", "100", "--workers", "5", "--jobs", "1"]


def rows(*words: object) -> list[dict]:
    result = CliRunner().invoke(app, ["simulate", "--json", *map(str, words)])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def refusal(*words: object) -> str:
    result = CliRunner().invoke(app, ["simulate", *map(str, words)])
    assert result.exit_code != 0
    if isinstance(result.exception, ConfigError):
        return str(result.exception)
    return " ".join(result.output.replace("│", " ").split())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """300 rows, ten a second, an hour's pause in the middle, one tuple 300 ms behind."""
    lines = ["who,at,what"]
    for row in range(300):
        at = row * 100 + (3_600_000 if row >= 150 else 0) - (400 if row == 77 else 0)
        lines.append(f"customer {row * row % 17},{at},{row}")
    path = tmp_path / "orders.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def test_the_command_names_every_stream_of_the_simulation() -> None:
    help = next(
        metadata.help
        for metadata in get_args(get_type_hints(simulate, include_extras=True)["stream"])
        if hasattr(metadata, "help")
    )
    named = set(re.findall(r"[a-z]+(?:-[a-z]+)*", help))
    # What a user knows without a word: the default, and streams that say what they are.
    assert set(STREAMS) - {"uniform"} <= named


def test_json_lines_have_exactly_the_fields_one_object_a_partitioner() -> None:
    result = rows(
        *SMALL, "--partitioner", "pkg:d=3", "--partitioner", "hashing", "--zipf", 1.4, "--sources", 3
    )
    assert [list(row) for row in result] == [[*FIELDS, "provenance"]] * 2
    made = result[0]["provenance"]
    assert (made["stream"], made["seed"], made["exponent"], made["sources"]) == ("zipf", 1, 1.4, 3)
    assert json.loads(made["options"])["d"] == 3
    assert [row["partitioner"] for row in result] == ["pkg:d=3", "hashing"]
    assert result[0]["max_holders"] <= 3
    assert result[1]["ksr"] == 1
    assert (result[0]["tuples"], result[0]["keys"], result[0]["workers"]) == (4_000, 100, 5)
    assert result[0]["window_imbalance"] is None


def test_without_names_every_registered_one_takes_part() -> None:
    assert [row["partitioner"] for row in rows(*SMALL)] == list(names())


@pytest.mark.parametrize("stream", ["zipf", "uniform", "shift", "alternating", "drift", "random-exponent"])
def test_windows_over_every_stream(stream: str) -> None:
    (row,) = rows(
        *SMALL, "--partitioner", "pkg", "--stream", stream, "--period", "500ms",
        "--window", "1s", "--slide", "100ms", "--rate", 2000, "--warmup-slides", 5,
    )  # fmt: skip
    assert 0 <= row["window_imbalance"] < 1
    assert row["max_holders"] <= 2


def test_the_exchange_is_asked_for_and_told_of_each_partitioner() -> None:
    names_given = ["--partitioner", "pkg", "--partitioner", "evenflow", "--partitioner", "dalton-cooperative"]
    words = [*SMALL, *names_given, "--zipf", 1.4, "--sources", 4, "--window", "1s", "--slide", "100ms"]
    off, on = rows(*words), rows(*words, "--exchange")
    assert [row["exchange"] for row in off] == [False, False, False]
    assert [row["exchange"] for row in on] == [False, True, True]
    assert on[0]["imbalance"] == off[0]["imbalance"]
    assert on[2]["ksr"] < off[2]["ksr"]
    assert [row["exchange_bytes"] for row in (*off, on[0])] == [None] * 4
    assert on[2]["exchange_bytes"] > on[1]["exchange_bytes"] > 0
    late = rows(*words, "--exchange", "--exchange-delay", "40ms", "--exchange-loss", 0.3)
    assert late[0]["imbalance"] == on[0]["imbalance"]
    assert 0 < late[2]["exchange_tables"] < on[2]["exchange_tables"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--exchange-delay", "40ms"], "--exchange-delay says how the messages of an exchange travel"),
        (["--exchange-loss", "0.1"], "--exchange-loss says how the messages of an exchange travel"),
        (["--exchange", "--exchange-delay", "soon"], "--exchange-delay: "),
    ],
)
def test_a_channel_that_cannot_be_is_refused(flags: list[str], expected: str) -> None:
    assert expected in refusal(*SMALL, *flags)


@pytest.mark.parametrize(
    ("flags", "given", "expected"),
    [
        (
            ["--exchange"],
            ["pkg", "evenflow"],
            "exchange between sources every slide: evenflow; the others cannot",
        ),
        (["--exchange"], ["evenflow"], "exchange between sources every slide: evenflow\n"),
        (
            ["--exchange", "--exchange-delay", "40ms", "--exchange-loss", "0.25"],
            ["evenflow"],
            "exchange between sources every slide (40 ms late, 0.25 lost): evenflow\n",
        ),
        (["--exchange"], ["pkg"], "exchange: none of these can"),
        ([], ["pkg", "evenflow"], None),
    ],
)
def test_a_footnote_names_who_exchanges(flags: list[str], given: list[str], expected: str | None) -> None:
    words = [*SMALL, "--sources", "2", *flags, *(word for name in given for word in ("--partitioner", name))]
    result = CliRunner().invoke(app, ["simulate", *words])
    assert result.exit_code == 0, result.output
    assert expected in result.stdout if expected else "exchange" not in result.stdout


def test_state_that_follows_its_key_is_priced_where_it_is_asked_for() -> None:
    words = [*SMALL, *(word for name in ("hashing", "pkg") for word in ("--partitioner", name))]
    priced = ["--state-bytes", 1000, "--state-rate", 1e6, "--state-pause", "2s"]
    plain, hashing, pkg = rows(*words)[1], *rows(*words, *priced)
    assert (hashing["key_moves"], hashing["moved_bytes"], hashing["moved_pause_s"]) == (0, 0, 0)
    assert pkg["key_moves"] == pkg["gamma"] - pkg["distinct"]
    assert pkg["moved_bytes"] == 1000 * pkg["key_moves"]
    assert pkg["moved_pause_s"] == pytest.approx(2 + pkg["moved_bytes"] / 1e6)
    assert plain.keys() == pkg.keys() - {"key_moves", "moved_bytes", "moved_pause_s"}
    windowed = rows(*words, *priced, "--window", "400ms", "--slide", "100ms")[1]
    assert 0 < windowed["key_moves"] < windowed["gamma"]


def test_the_hash_seed_moves_the_keys_and_not_the_stream() -> None:
    one, other, same = (
        rows(*SMALL, "--partitioner", "hashing", *seeds)[0]
        for seeds in (["--seed", 2], ["--seed", 2, "--hash-seed", 9], ["--seed", 2, "--hash-seed", 2])
    )
    assert one["imbalance"] == same["imbalance"] != other["imbalance"]
    assert one["distinct"] == other["distinct"]


def test_a_csv_file_by_its_own_times(file: Path) -> None:
    (row,) = rows(
        "--input", file, "--key", "who", "--time", "at", "--workers", 4, "--partitioner", "shuffle",
        "--window", "2s", "--slide", "1s",
    )  # fmt: skip
    assert (row["tuples"], row["keys"], row["distinct"] <= row["keys"]) == (300, 9, True)
    (first,) = rows("--input", file, "--key", "who", "--tuples", 100, "--partitioner", "hashing")
    assert first["tuples"] == 100


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    """400 rows of ten customers, of which the third has few rows and nearly all of the work."""
    lines = ["who,ms,plain,what"]
    for row in range(400):
        who = 3 if row % 40 == 7 else row * row % 10
        lines.append(f"c{who},{900.5 if row % 40 == 7 else ('' if row % 50 == 0 else 2)},1,text {row}")
    path = tmp_path / "priced.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_cost_column_makes_every_load_one_of_costs_and_marks_who_does_not_weigh(priced: Path) -> None:
    words = ["--input", priced, "--key", "who", "--workers", 4, "--jobs", 1]
    who = ["--partitioner", "hashing", "--partitioner", COUNTING]
    hashing, counting = rows(*words, *who, "--cost", "ms")
    counted = rows(*words, *who)
    assert (hashing["weighs"], counting["weighs"]) == (True, False)
    assert hashing["total_cost"] == counting["total_cost"] == 10 * 900 + 382 * 2 + 8
    assert hashing["imbalance"] > 0.6 > counted[0]["imbalance"]
    assert [row["ksr"] for row in (hashing, counting)] == [row["ksr"] for row in counted]
    assert hashing["provenance"]["cost"] == "ms"
    assert "cost" not in counted[0]["provenance"]
    table = CliRunner().invoke(app, ["simulate", *map(str, words), *who, "--cost", "ms"])
    assert f"{COUNTING} (does not weigh)" in table.stdout
    assert "hashing (does not weigh)" not in table.stdout
    assert "loads and imbalance are of costs" in table.stdout
    assert table.stderr.count("were changed: 10 rounded to whole numbers; 8 below 1 or missing") == 1


def test_costs_that_are_all_1_change_no_figure_and_are_remarked(priced: Path) -> None:
    words = [
        "--input",
        priced,
        "--key",
        "who",
        "--workers",
        4,
        "--jobs",
        1,
        "--partitioner",
        "hashing",
        "--json",
    ]
    (counted,) = rows(*words)
    result = CliRunner().invoke(app, ["simulate", *map(str, words), "--cost", "plain"])
    assert "every tuple has the cost 1 in 'plain'" in result.stderr
    outcome = json.loads(result.stdout)
    assert all(outcome[name] == counted[name] for name in FIELDS if name not in ("seconds", "ns_per_tuple"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cost", "what"], "the cost column 'what' holds 'text 0', which is not a number"),
        (["--cost", "price"], "has no column 'price'"),
    ],
)
def test_a_column_that_is_no_cost_is_refused(priced: Path, words: list[str], expected: str) -> None:
    assert expected in refusal("--input", priced, "--key", "who", *words)
    assert "--cost describes a file" in refusal("--tuples", 9, *words)


def test_a_picture_says_that_loads_are_costs(tmp_path: Path) -> None:
    path = tmp_path / "costly.svg"
    who = ["--partitioner", "hashing", "--partitioner", COUNTING]
    rows("--stream", "costly", *SMALL, *who, "--plot", path)
    assert f"Loads are sums of the costs of tuples; do not weigh: {COUNTING}." in path.read_text()


def test_times_that_are_equal_everywhere_are_doubted_once(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("who,at\n" + "a,1800000000000\n" * 20)
    words = ["simulate", "--input", str(path), "--key", "who", "--jobs", "1", "--json"]
    words += ["--partitioner", "hashing", "--partitioner", "shuffle", "--workers", "2"]
    timed = CliRunner().invoke(app, [*words, "--time", "at"])
    assert timed.exit_code == 0, timed.output
    assert timed.stderr.count("all 20 tuples have the same time in 'at', 2027-01-15 08:00:00 UTC") == 1
    assert "warning" not in CliRunner().invoke(app, words).stderr


def test_of_a_source_that_never_ends_the_first_tuples_are_taken() -> None:
    words = [
        "--input",
        "zipf:z=1.4,keys=100,tuples=endless",
        "--key",
        "key",
        "--partitioner",
        "hashing",
        "--jobs",
        1,
    ]
    assert rows(*words, "--tuples", 700)[0]["tuples"] == 700
    assert "never ends" in refusal(*words)


def test_a_table_names_every_partitioner_and_a_plot_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    words = [*SMALL, "--partitioner", "pkg", "--partitioner", "hashing", "--plot", str(path)]
    result = CliRunner().invoke(app, ["simulate", *words, "--window", "1s", "--slide", "500ms"])
    assert result.exit_code == 0, result.output
    for words_shown in ("pkg", "hashing", "replication", "of window"):
        assert words_shown in result.stdout
    assert path.read_text().startswith("<svg")


def test_a_narrow_terminal_gets_fewer_columns_and_whole_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["simulate", *SMALL, "--partitioner", "pkg", "--window", "1s"])
    assert "…" not in result.stdout
    assert "max holders" in result.stdout
    assert "mean I(t)" not in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--partitioner pgk", "unknown partitioner 'pgk'; did you mean 'pkg'?"),
        ("--partitioner d-choices:thetta=1", "unknown option 'thetta' of d-choices; did you mean 'theta'?"),
        ("--partitioner pkg:d", "'d' is no option"),
        ("--workers 0", "workers must be at least 1, not 0"),
        ("--workers many", "'many' is not a whole number"),
        ("--tuples 1.5", "'1.5' is not a whole number"),
        ("--tuples inf", "'inf' is not a whole number"),
        ("--tuples 0", "tuples must be at least 1"),
        ("--tuples 1e15", "1,000,000,000,000,000 tuples need 20,000,000.0 GB"),
        ("--rate 1e-300", "past int64 ms"),
        ("--window 10s --slide 3s", "the slide (3000 ms) does not divide the window (10000 ms)"),
        ("--window soon", "--window: 'soon' is not a duration"),
        ("--state-rate 1e6", "--state-rate and --state-pause are the costs of moving state"),
        ("--warmup-slides 3", "--warmup-slides counts slides of a window"),
        ("--tuples 1000 --window 1s --warmup-slides 9", "none with tuples is left after a warm-up of 9"),
        ("--plot out.gif", "out.gif ends with none of .png, .svg, .pdf, .html"),
        ("--key who", "--key describes a file"),
        ("--input {file} --key who --zipf 2", "--zipf describes a generated stream"),
        ("--input {file} --key nobody", "has no column 'nobody'; it has 'who', 'at', 'what'"),
        ("--input {file} --key who --time when", "has no column 'when'"),
        ("--input {file}", "which column is the record key?"),
        ("--input {file} --key who --time at --rate 5", "--rate numbers tuples that have no time"),
        ("--input {file} --key who --time-unit s", "--time-unit needs --time"),
        ("--input {file} --key who --tuples 0", "--tuples must be at least 1"),
        ("--input {empty} --key who", "the input has no tuples"),
        ("--input {empty} --key who --time at", "the input has no tuples"),
        ("--input {empty} --key who --time at --time-unit iso", "the input has no tuples"),
        ("--input /no/such.csv --key who", "there is no file /no/such.csv"),
        ("--input {file} --key who --time at --max-disorder 200ms", "300 ms behind an earlier one"),
        (
            "--input {file} --key who --time at --window 200ms --slide 100ms",
            "sort the file by its time column",
        ),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong(
    words: str, message: str, file: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("who,at\n")
    assert message in refusal(*words.format(file=file, empty=empty).split())
