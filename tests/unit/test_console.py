"""What the command offers in a clone, in a wheel, and where an extra is missing."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.main import app
from evenflow.commands.frame import EXTRAS, run_command
from evenflow.console import SERVICES, library_application, wheel_application
from evenflow.errors import ConfigError
from evenflow.host.services import beside, service_module


def commands(of: typer.Typer) -> set[str]:
    return set(typer.main.get_command(of).commands)  # type: ignore[attr-defined]


def test_a_clone_has_the_librarys_commands_and_those_of_the_services() -> None:
    assert commands(app) == commands(library_application()) | set(SERVICES)
    assert {
        "simulate",
        "size",
        "advise",
        "settings",
        "partitioners",
        "policies",
        "queries",
        "sources",
        "aggregates",
        "sweep",
        "datasets",
        "train",
    } == commands(library_application())


def test_the_entry_point_of_a_clone_offers_everything() -> None:
    code = "import sys; from evenflow.console import run; sys.argv = ['evenflow', '--help']; run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in ("simulate", "partition", "verify"))


def test_help_of_a_wheel_names_the_commands_of_a_clone() -> None:
    shown = CliRunner().invoke(wheel_application(), ["--help"]).output
    assert "simulate" in shown
    assert "A clone of evenflow has more commands: aggregate," in " ".join(shown.split())


@pytest.mark.parametrize("words", [["replay", "orders.csv", "--rate", "5"], ["doctor", "--help"], ["plan"]])
def test_a_wheel_says_where_a_services_command_comes_from(words: list[str], tmp_path: Path) -> None:
    assert not beside(tmp_path)
    with pytest.raises(ConfigError) as caught:
        service_module("cli.main", command=f"`evenflow {words[0]}`", folder=tmp_path)
    assert "comes with the clone or image of evenflow, not with the wheel" in caught.value.message
    assert words[0] in commands(wheel_application())


def test_packages_of_others_beside_the_library_are_no_services(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "main.py").touch()
    assert not beside(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    assert beside(tmp_path)


@pytest.mark.parametrize("package", sorted(EXTRAS))
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise ModuleNotFoundError(f"No module named '{package}.inner'", name=f"{package}.inner")

    with pytest.raises(SystemExit) as caught:
        run_command(command)
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert told.startswith(f"error: this needs the package {package}, which is not installed\n  -> ")
    assert f"evenflow[{EXTRAS[package]}]" in told


def test_a_missing_module_of_our_own_is_a_bug_and_stays_one() -> None:
    def command() -> None:
        raise ModuleNotFoundError("No module named 'evenflow.nothing'", name="evenflow.nothing")

    with pytest.raises(ModuleNotFoundError):
        run_command(command)
