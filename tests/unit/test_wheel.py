"""What `pip install` of a wheel takes: the library alone, with a command that works without the services.

The wheel is built from this checkout and unpacked into a virtual environment that has nothing but the
packages which its own metadata asks for (links to those installed here, so no registry is needed).
"""

import json
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what git tracks, as from a fresh clone: no build folder is left here."""
    folder = tmp_path_factory.mktemp("wheel")
    clone = folder / "clone"
    clone.mkdir()
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.decode().split("\0")  # fmt: skip
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run([sys.executable, *words], cwd=clone, check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    place = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    for name in required("evenflow"):
        for top in top_level(distribution(name)):
            if not (place / top.name).exists():
                (place / top.name).symlink_to(top)
    return folder / "bin" / "python"


def required(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Names of the distributions that this one needs without any extra, and theirs."""
    result: set[str] = set()
    for text in distribution(name).requires or ():
        wanted = Requirement(text)
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        result |= {wanted.name} | required(wanted.name, seen | result | {wanted.name})
    return result


def top_level(of: Distribution) -> Iterator[Path]:
    """Folders and files that it has in site-packages."""
    for first in {file.parts[0] for file in of.files or ()} - {"..", "__pycache__"}:
        yield Path(str(of.locate_file(first)))


def evenflow(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from evenflow.console import run; sys.argv[0] = 'evenflow'; run()"
    return subprocess.run(
        [str(python), "-I", "-c", code, *words], capture_output=True, text=True, cwd=python.parent
    )


def test_a_wheel_is_about_as_large_as_its_page_says(wheel: Path) -> None:
    said = re.search(r"The wheel has ([\d.]+) MB", (ROOT / "docs" / "library.md").read_text())
    assert said is not None
    assert abs(float(said[1]) - wheel.stat().st_size / 1e6) < 0.1


def test_a_wheel_puts_one_name_into_site_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
        assert tops == {"evenflow", "evenflow-0.1.0.dist-info"}
        scripts = archive.read("evenflow-0.1.0.dist-info/entry_points.txt").decode()
        assert "evenflow/py.typed" in archive.namelist()
        packages = {str(Path(name).parent) for name in archive.namelist() if name.endswith("__init__.py")}
    assert "evenflow = evenflow.console:run" in scripts
    here = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "evenflow").rglob("__init__.py")}
    assert packages == here


def test_the_command_of_a_wheel_has_help_and_knows_where_the_services_are(installed: Path) -> None:
    shown = evenflow(installed, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "simulate" in shown.stdout
    refused = evenflow(installed, "replay", "orders.csv", "--rate", "5")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: `evenflow replay` comes with the clone or image of evenflow")


def test_a_wheel_says_its_version(installed: Path) -> None:
    assert evenflow(installed, "--version").stdout == "evenflow 0.1.0\n"
    assert evenflow(installed, "simulate", "--version").stdout == "evenflow 0.1.0\n"


def test_settings_and_catalogue_come_with_the_wheel(installed: Path) -> None:
    assert len(json.loads(evenflow(installed, "settings", "--json").stdout)) > 50
    assert "dalton" in evenflow(installed, "partitioners").stdout
    described = [
        json.loads(line) for line in evenflow(installed, "partitioners", "--json").stdout.splitlines()
    ]
    assert "evenflow" in {one["name"] for one in described}
    assert "@article{zapridou2022dalton," in evenflow(installed, "partitioners", "--bibtex").stdout
    assert "flights" in evenflow(installed, "queries").stdout


def test_advice_on_a_topic_says_that_it_needs_the_clone(installed: Path) -> None:
    refused = evenflow(installed, "advise", "--topic", "orders")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: advice on a topic (without --input) comes with the clone")


def test_a_wheel_simulates(installed: Path, tmp_path: Path) -> None:
    words = ["--partitioner", "hashing", "--workers", "4", "--tuples", "1000", "--jobs", "1", "--json"]
    made = evenflow(installed, "simulate", *words)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["tuples"] == 1000


@pytest.mark.long  # compiles the kernels of all candidates
def test_a_wheel_advises_on_a_file(installed: Path, tmp_path: Path) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text("who,at\n" + "".join(f"c{row % 7},{row}\n" for row in range(500)))
    made = evenflow(installed, "advise", "--input", str(orders), "--key", "who", "--workers", "2", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["keys"] == 7
