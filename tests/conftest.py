"""What all suites share. A suite whose service is missing fails; it never skips."""

from __future__ import annotations

import atexit
import gc
import os
import re
from collections.abc import Generator, Iterator
from uuid import uuid4

import pytest

from evenflow.settings import KafkaSettings
from tests.families import families, outside
from tests.patience import PATIENCE
from workbench.local.broker import EmbeddedBroker


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups that xdist does not see would prepare everything once in each process, for minutes, without a
    word.
    """
    if getattr(config.option, "loadgroup", False):
        alone = [
            item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        if alone:
            raise pytest.UsageError(
                f"pytest-xdist does not group {alone[0]}: pytest and it do not fit each other"
            )
    for item in items:
        if limit := item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(limit.args[0] * PATIENCE), append=False)
    left = outside(
        families(items),
        float(os.environ.get("EVENFLOW_FAMILIES", "1")),
        int(os.environ.get("EVENFLOW_PART", "0")),
    )
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
        items[:] = [item for item in items if item.nodeid not in left]
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = side_by_side(items)


def side_by_side(items: list[pytest.Item]) -> list[pytest.Item]:
    """The same tests, files that wait for services spread evenly among files that compute: cores always
    have work.
    """
    kinds: dict[bool, dict[str, list[pytest.Item]]] = {True: {}, False: {}}
    for item in items:
        waits = item.get_closest_marker("pipeline") is not None
        kinds[waits].setdefault(item.nodeid.partition("::")[0], []).append(item)
    turns = [
        (place / len(files), tests) for files in kinds.values() for place, tests in enumerate(files.values())
    ]
    return [item for _, tests in sorted(turns, key=lambda turn: turn[0]) for item in tests]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lives until the end: the garbage collector would walk over 14,000 tests again and
    again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        atexit.register(gc.unfreeze)  # else DuckDB says at the end that its objects leak


@pytest.fixture(scope="session", autouse=True)
def _state_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that a test starts keeps its state in the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_lives() -> Iterator[None]:
    """Java compiles for drivers that live for seconds: its second compiler took a quarter of the suites'
    CPU time.
    """
    with pytest.MonkeyPatch.context() as patch:
        options = os.environ.get("SPARK_SUBMIT_OPTS", "")
        patch.setenv("SPARK_SUBMIT_OPTS", f"-XX:TieredStopAtLevel=1 {options}".strip())
        yield


@pytest.fixture(params=["queues", "consume"])
def either_reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitioners of a test read in this way, those in processes of their own too: each test runs on
    both.
    """
    monkeypatch.setenv("EVENFLOW_PARTITIONER__READING", request.param)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[EmbeddedBroker]:
    """One broker for the whole run. Tests that stop or kill a broker start their own."""
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_settings(kafka_broker: EmbeddedBroker) -> KafkaSettings:
    """Settings that reach `kafka_broker`."""
    return kafka_broker.settings()


@pytest.fixture
def query_name(request: pytest.FixtureRequest) -> str:
    """A query name (topic prefix) that no other test has."""
    readable = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    return f"{readable}-{uuid4().hex[:8]}"
