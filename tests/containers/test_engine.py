"""The engine itself: what its containers see, and that nothing of it stays, however it ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenflow.errors import ServiceError
from tests.ground.containers.engine import Engine, engine
from tests.ground.traces import Holder, traces

pytestmark = pytest.mark.containers


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An environment in which the engine is another one than that of the other tests, with an empty cache."""
    environment = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
    return environment | {"XDG_CACHE_HOME": str(tmp_path)}


def test_a_container_runs_the_base_s_python(docker_engine: Engine, python_base: str, java_base: str) -> None:
    command = ("run", "--rm", "--read-only", "--user=1000")
    assert docker_engine.docker(*command, python_base, "python", "-c", "print(6 * 7)") == "42"
    assert "17." in docker_engine.docker(*command, java_base, "java", "--version")


def test_an_engine_that_nobody_runs_is_said() -> None:
    with (
        pytest.raises(ServiceError, match="no engine answers at DOCKER_HOST=unix:///nowhere"),
        engine(environment={"DOCKER_HOST": "unix:///nowhere"}),
    ):
        pass


def test_the_engine_that_docker_host_names_is_taken_and_left_as_it_is(
    docker_engine: Engine, python_base: str, place: dict[str, str], tmp_path: Path
) -> None:
    container = docker_engine.docker("run", "--detach", python_base, "sleep", "600")
    try:
        before = traces(tmp_path)
        holder = _hold(place | {"DOCKER_HOST": docker_engine.host})
        assert holder.said == repr(docker_engine)
        assert not (tmp_path / "evenflow").exists(), "it begins no engine of its own"
        holder.let_go()
        assert traces(tmp_path) == before
        assert docker_engine.docker("inspect", "--format={{.State.Running}}", container) == "true"
    finally:
        docker_engine.docker("rm", "--force", container)


def test_what_docker_host_names_runs_containers_and_needs_no_root(
    docker_engine: Engine, python_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with engine(environment={"DOCKER_HOST": docker_engine.host}) as named:
        assert named == docker_engine
        assert named.docker("run", "--rm", python_base, "python", "-c", "print(6 * 7)") == "42"


def test_without_root_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServiceError, match=r"(?s)needs root.*docker\.io"), engine(environment={}):
        pass


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_of_an_engine_stays(place: dict[str, str], tmp_path: Path, killed: bool) -> None:
    before = traces(tmp_path)
    holder = _hold(place)
    assert traces(tmp_path) != before
    if killed:
        holder.kill()
        holder = _hold(place)  # the next one finds what the killed one left
    holder.let_go()
    assert traces(tmp_path) == before


def test_nothing_stays_of_an_engine_that_cannot_start(place: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "evenflow" / "docker").mkdir(parents=True)
    (tmp_path / "evenflow" / "docker" / "data").write_text("no folder")
    before = traces(tmp_path)
    assert "the Docker engine does not start" in _hold(place).let_go()
    assert traces(tmp_path) == before


def test_processes_share_one_engine(place: dict[str, str]) -> None:
    first, second = _hold(place), _hold(place)
    assert first.said == second.said
    second.let_go()
    third = _hold(place)
    assert third.said == first.said
    third.let_go()
    first.let_go()


def _hold(place: dict[str, str]) -> Holder:
    return Holder("tests.ground.containers.engine", "engine", place)
