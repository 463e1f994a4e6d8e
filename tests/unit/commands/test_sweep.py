"""`evenflow sweep` as a person uses it."""

import json
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError
from evenflow.simulation.provenance import program
from evenflow.sweep import read_table
from evenflow.sweep.table import SERIES
from tests.unit.commands.test_simulate import COUNTING

SMALL = [
    "--tuples", "2e3", "--keys", "50", "--workers", "3,4", "--zipf", "1:1.5:0.5", "--seeds", "1:3", "--jobs",
    "1",
    "--partitioner", "pkg", "--partitioner", "hashing", "--window", "200ms", "--slide", "20ms",
]  # fmt: skip
ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8")


def invoke(*words: object) -> str:
    result = CliRunner().invoke(app, ["sweep", *map(str, words)])
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*words: object) -> str:
    result = CliRunner().invoke(app, ["sweep", *map(str, words)])
    assert result.exit_code != 0
    if isinstance(result.exception, ConfigError):
        return str(result.exception)
    return " ".join(result.output.replace("│", " ").split())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "sweep.csv"
    invoke("--output", path, "--series", path.with_name("series.parquet"), *SMALL)
    return path


def test_a_sweep_has_a_row_for_every_combination(file: Path) -> None:
    rows = read_table(file).to_pylist()
    assert len(rows) == 2 * 2 * 2 * 3
    assert {(row["partitioner"], row["workers"], row["exponent"], row["seed"]) for row in rows} == {
        (name, workers, exponent, seed)
        for name in ("pkg", "hashing")
        for workers in (3, 4)
        for exponent in (1.0, 1.5)
        for seed in (1, 2, 3)
    }


def test_a_row_is_what_simulate_says(file: Path) -> None:
    words = [
        "simulate", "--json", "--tuples", "2e3", "--keys", "50", "--workers", "4", "--zipf", "1.5", "--seed",
        "3",
        "--partitioner", "pkg", "--window", "200ms", "--slide", "20ms", "--jobs", "1",
    ]  # fmt: skip
    said = json.loads(CliRunner().invoke(app, words).stdout)
    made = said.pop("provenance")
    (row,) = (
        row
        for row in read_table(file).to_pylist()
        if (row["partitioner"], row["workers"], row["exponent"], row["seed"]) == ("pkg", 4, 1.5, 3)
    )
    for name, value in (said | made).items():
        assert name in ("seconds", "ns_per_tuple") or row[name] == value, name


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_sweep_over_costs_says_so_and_one_without_has_no_column_of_them(
    file: Path, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"costly.{ending}"
    words = [
        "--stream",
        "costly",
        "--output",
        path,
        "--tuples",
        "2e3",
        "--keys",
        50,
        "--workers",
        3,
        "--jobs",
        1,
    ]
    who = ["--partitioner", "hashing", "--partitioner", COUNTING]
    invoke(*words, "--seeds", 1, *who)
    result = read_table(path).to_pylist()
    assert [(row["partitioner"], row["weighs"]) for row in result] == [("hashing", True), (COUNTING, False)]
    assert result[0]["total_cost"] == result[1]["total_cost"] > 2_000
    assert "cells are finished" in invoke(*words, "--seeds", "1:2", *who)
    picture = tmp_path / "costly.svg"
    invoke("plot", path, picture, "--metric", "imbalance")
    assert "share of the costs" in picture.read_text()
    assert "total_cost" not in file.read_text().splitlines()[0]
    assert read_table(file).column("weighs").null_count == 24


def test_another_cost_column_is_another_sweep(tmp_path: Path) -> None:
    rows, path = tmp_path / "rows.csv", tmp_path / "sweep.parquet"
    rows.write_text("who,ms,bytes\n" + "".join(f"c{row % 7},{row % 5},{row % 9}\n" for row in range(300)))
    words = [
        "--output",
        path,
        "--input",
        rows,
        "--key",
        "who",
        "--workers",
        2,
        "--jobs",
        1,
        "--partitioner",
        "hashing",
    ]
    invoke(*words, "--cost", "ms")
    assert {row["cost"] for row in read_table(path).to_pylist()} == {"ms"}
    assert "another sweep" in refusal(*words, "--cost", "bytes")


def test_the_series_has_every_window_and_their_mean_is_the_figure(file: Path) -> None:
    series = read_table(file.with_name("series.parquet"), SERIES).to_pylist()
    for row in read_table(file).to_pylist():
        own = [
            point["imbalance"]
            for point in series
            if all(point[name] == row[name] for name in ("partitioner", "workers", "exponent", "seed"))
        ]
        assert len(own) == 2_000 // 20
        assert sum(own[10:]) / len(own[10:]) == pytest.approx(row["window_imbalance"])


def test_the_same_command_again_runs_nothing(file: Path) -> None:
    before = file.read_bytes()
    told = invoke("--output", file, "--series", file.with_name("series.parquet"), *SMALL)
    assert "24 of 24 cells are finished" in told
    assert file.read_bytes() == before


def test_a_sweep_that_was_killed_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    words = ["--output", tmp_path / "t.csv", *SMALL, "--seeds", "1:40"]
    command = [sys.executable, "-m", "cli.main", "sweep", *map(str, words), "--jobs", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    part = tmp_path / "t.csv.part"
    while process.poll() is None and not (part.exists() and part.stat().st_size):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    process.kill()
    process.communicate(timeout=60)  # ends when the last process that has the pipes has ended
    finished = part.read_text().count("\n")
    assert 0 < finished < 2 * 2 * 2 * 40
    assert f"{finished:,} of 320 cells are finished" in invoke(*words)
    assert read_table(tmp_path / "t.csv").num_rows == 320
    assert not part.exists()


def test_two_partitioners_are_compared_seed_by_seed(file: Path) -> None:
    lines = invoke("compare", file, "pkg", "hashing", "--metric", "window_imbalance", "--json").splitlines()
    result = [json.loads(line) for line in lines]
    assert len(result) == 4
    assert {one["seeds"] for one in result} == {3}
    assert all(one["first_wins"] + one["second_wins"] + one["ties"] == 3 for one in result)
    for one in result:
        ours, theirs = one["first_provenance"], one["second_provenance"]
        assert ours["seed"] == ours["hash_seed"] == theirs["seed"] == [1, 2, 3]
        assert ours["exponent"] == one["condition"]["exponent"]
        assert (json.loads(ours["options"]).get("d"), json.loads(theirs["options"]).get("d")) == (2, None)
        assert program().items() <= ours.items()
    alone, *_ = invoke("compare", file, "--metric", "window_imbalance", "--json").splitlines()
    assert json.loads(alone)["provenance"].keys() == result[0]["first_provenance"].keys()
    shown = invoke("compare", file, "pkg", "hashing")
    assert "mean over seeds with its 95% t interval" in shown
    assert "pkg - hashing" in shown
    assert "median over seeds with its 90% bootstrap interval" in invoke(
        "compare", file, "--metric", "ksr", "--centre", "median", "--level", "0.9"
    )


@pytest.mark.parametrize("ending", ["svg", "pdf"])
@pytest.mark.parametrize("words", [["--panels", "exponent"], ["--x", "exponent", "--panels", "workers"]])
def test_a_picture_has_panels_and_says_what_was_simulated(
    file: Path, tmp_path: Path, ending: str, words: list[str]
) -> None:
    picture = tmp_path / f"figure.{ending}"
    invoke("plot", file, picture, "--metric", "window_imbalance", *words)
    content = picture.read_bytes()
    if ending == "pdf":
        assert content.startswith(b"%PDF")
        return
    assert b"2,000 tuples, 50 keys, 1 source, window 0.2 s, slide 0.02 s" in content
    assert b"mean over 3 seeds (1 to 3). Band: its 95% t interval" in content
    for title in (
        ["Zipf 1", "Zipf 1.5"] if words[1] == "exponent" and len(words) == 2 else ["3 workers", "4 workers"]
    ):
        assert f">{title}<".encode() in content


def test_a_file_is_swept_over_hash_seeds_and_is_another_sweep_once_it_has_changed(tmp_path: Path) -> None:
    source = tmp_path / "orders.csv"
    customers = [f"c{row * row % 17}\n" for row in range(300)]
    source.write_text("who\n" + "".join(customers))
    words = [
        "--output", tmp_path / "t.parquet", "--input", source, "--key", "who", "--partitioner", "hashing",
        "--workers", 4, "--seeds", "1,2", "--jobs", 1,
    ]  # fmt: skip
    invoke(*words)
    rows = read_table(tmp_path / "t.parquet").to_pylist()
    assert [(row["tuples"], row["seed"], row["hash_seed"], row["key"]) for row in rows] == [
        (300, None, 1, "who"),
        (300, None, 2, "who"),
    ]
    assert "2 of 2 cells are finished" in invoke(*words)
    source.write_text("who\n" + "".join(reversed(customers)))
    refused = CliRunner().invoke(app, ["sweep", *map(str, words)])
    assert isinstance(refused.exception, ConfigError)
    assert "has rows of another sweep: digest" in refused.exception.message


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "a sweep needs --output"),
        ("--output t.txt", "t.txt ends with none of .parquet, .csv"),
        ("--output no/t.csv", "there is no folder no"),
        ("--output t.csv --seeds 9:1", "--seeds: the range '9:1' descends"),
        ("--output t.csv --workers ,", "--workers: '' is neither a number nor a range"),
        ("--output t.csv --workers 0", "workers must be at least 1, not 0"),
        ("--output t.csv --partitioner pgk", "unknown partitioner 'pgk'; did you mean 'pkg'?"),
        ("--output t.csv --stream uniform --zipf 1,2", "the stream uniform has no exponent"),
        ("--output t.csv --key who", "--key describes a file"),
        ("--output t.csv --input a.csv --zipf 1", "--zipf describes a generated stream"),
        ("--output t.csv --warmup-slides 3", "--warmup-slides counts slides of a window"),
        ("--output t.csv --exchange-loss 0.1", "give --exchange too"),
        ("compare no.csv", "there is no file no.csv"),
        ("compare no.csv a", "compare takes two partitioners or none, not 1"),
        ("plot no.csv x.gif", "x.gif ends with none of"),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in refusal(*words.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "the table has several values of exponent: 1.0, 1.5"),
        (["--x", "sources", "--panels", "sources"], "x and panels are both 'sources'"),
        (["--panels", "exponent", "--partitioner", "cm"], "the table has no partitioner 'cm'"),
        (["--panels", "exponent", "--metric", "balance"], "there is no metric 'balance'"),
    ],
)
def test_a_picture_that_cannot_be_is_refused(
    file: Path, tmp_path: Path, words: list[str], expected: str
) -> None:
    assert expected in refusal("plot", file, tmp_path / "x.svg", *words)


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = PAGE.split("```\n")[1].splitlines()
    assert len(commands) == 3
    for command in commands:
        program, sweep, *words = shlex.split(command)
        assert (program, sweep) == ("evenflow", "sweep")
        told = invoke(*words)
        assert "pkg - d-choices" in told or words[0] != "compare"
    assert {path.name for path in tmp_path.iterdir()} == {"sweep.parquet", "figure.pdf"}
