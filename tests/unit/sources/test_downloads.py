"""`evenflow datasets check`: a file that fits, and the first row that does not."""

import gzip
import json
from hashlib import sha256
from pathlib import Path

import pyarrow.csv as pacsv
import pytest
from typer.testing import CliRunner

from evenflow.console import library_application
from evenflow.errors import ConfigError
from evenflow.settings.word_options import WordOptions
from evenflow.sources.datasets import DATA_SETS
from evenflow.sources.downloads import check_download


def made(name: str, folder: Path) -> Path:
    """A file of ten generated rows in the layout of the data set."""
    item = DATA_SETS[name]
    table = item.make(WordOptions("tuples=10", of=name))
    path = folder / f"{name}.csv"
    pacsv.write_csv(table, path, pacsv.WriteOptions(include_header=item.header))
    return path


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_file_of_the_data_set_fits(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    found = check_download(name, path)
    assert (found.rows, found.problem, found.known_as) == (10, None, None)
    assert found.columns == tuple(DATA_SETS[name].columns)
    assert found.sha256 == sha256(path.read_bytes()).hexdigest()


def test_the_first_bad_row_is_named(tmp_path: Path) -> None:
    path = made("retail", tmp_path)
    lines = path.read_text().splitlines()
    lines[4] = lines[4].replace("2010-12-01", "the first")
    path.write_text("\n".join(lines))
    found = check_download("retail", path)
    assert found.rows is None
    assert "'InvoiceDate' is 'the first" in (found.problem or "")
    assert "in row 4" in (found.problem or "")


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
    assert json.loads(done.stdout)["rows"] == 10


def test_an_unknown_data_set_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'taxi'"):
        check_download("taxis", tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        check_download("taxi", tmp_path / "nothing.csv")


def test_the_page_has_the_layout_and_licence_of_each_data_set() -> None:
    page = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text()
    for item in DATA_SETS.values():
        assert f"| `{item.name}` | {item.layout} | {item.licence} |" in page
