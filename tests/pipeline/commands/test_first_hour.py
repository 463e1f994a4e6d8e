"""docs/first-hour.md, every command of it in its order, as a stranger types them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenflow.settings import KafkaSettings
from tests.patience import PATIENCE
from tests.pipeline.planes import wait_until
from topics.admin import describe
from workbench.local.ports import free_ports

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "first-hour.md"
_BLOCK = re.compile(r"^```sh ?(service|stopped)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A block of the page: commands that end, or (`service`) one that runs until Ctrl-C."""

    kind: str
    commands: list[str]


def steps() -> list[Step]:
    return [Step(kind, text.strip().splitlines()) for kind, text in _BLOCK.findall(PAGE.read_text())]


class Terminals:
    """Terminals in one folder, with the clone's commands on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = str(free_ports(1)[0])
        self.services: dict[str, subprocess.Popen[str]] = {}
        (folder / "examples").symlink_to(ROOT / "examples")
        bin_folder = str(Path(sys.executable).parent)
        self._environment = {
            **os.environ,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state"),
            "EVENFLOW_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{self.port}",
        }

    def start(self, command: str) -> None:
        log = (self.folder / f"{len(self.services)}.log").open("w")
        self.services[command] = subprocess.Popen(
            self._words(command).split(),
            cwd=self.folder,
            env=self._environment,
            stdout=log,
            stderr=log,
            text=True,
        )

    def run(self, command: str) -> str:
        done = subprocess.run(
            self._words(command),
            shell=True,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120 * PATIENCE,
        )
        # On a busy machine `status` may warn of a slow micro-batch.
        most = 1 if command == "evenflow status" else 0
        assert 0 <= done.returncode <= most, done.stdout + done.stderr + self.said()
        return done.stdout + done.stderr

    def said(self) -> str:
        return "\n".join(file.read_text() for file in sorted(self.folder.glob("*.log")))

    def stop(self, *, but: tuple[str, ...] = ()) -> None:
        """Ctrl-C in the terminals, the last one first; to the script SIGTERM, as a shell may have it
        ignore the other.
        """
        for command, service in reversed(self.services.items()):
            if service.poll() is None and not command.startswith(but or ("\0",)):
                service.send_signal(signal.SIGTERM if command.startswith("python") else signal.SIGINT)
                try:
                    service.wait(60)
                finally:
                    service.kill()

    def _words(self, command: str) -> str:
        return command.replace("9092", self.port)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    result = Terminals(tmp_path)
    try:
        yield result
    finally:
        result.stop()


def test_every_command_of_the_first_hour_works_as_it_stands(terminals: Terminals) -> None:
    said: dict[str, str] = {}
    for step in steps():
        if step.kind == "service":
            terminals.start(step.commands[0])
            _wait_for(terminals, step.commands[0])
            continue
        if step.kind == "stopped":
            terminals.stop(but=("evenflow broker", "python"))
        for command in step.commands:
            said[command] = terminals.run(command)
    assert 'key = "customer"' in said["evenflow doctor --topic orders"]
    # Where a cell's line ends depends on how many records came.
    assert "0 would be rejected" in " ".join(said["evenflow doctor"].replace("│", " ").split())
    assert "0 differences" in said["evenflow verify"]
    assert re.search(r"[1-9]\d* windows, [1-9]\d* rows compared", said["evenflow verify"])
    assert "orders-by-customer.routed" in said["evenflow reset --results --yes"]
    assert (terminals.folder / "evenflow.toml").exists()
    assert not list((terminals.folder / "results").glob("*.parquet"))


def _wait_for(terminals: Terminals, command: str) -> None:
    """What a person sees before going on: an address, records, lines that say something moved, results."""
    service = terminals.services[command]

    def alive() -> bool:
        assert service.poll() is None, terminals.said()
        return True

    if command.startswith("evenflow broker"):
        wait_until(lambda: alive() and "127.0.0.1:" in terminals.said())
    elif command.startswith("python"):
        wait_until(lambda: alive() and _records(terminals) > 3_000)
    elif command == "evenflow partition":
        wait_until(lambda: alive() and "assigned input partitions" in terminals.said())
    else:
        wait_until(lambda: alive() and any((terminals.folder / "results").glob("*.parquet")), timeout=150)


def _records(terminals: Terminals) -> int:
    topic = describe(KafkaSettings(bootstrap_servers=f"127.0.0.1:{terminals.port}"), ["orders"]).get("orders")
    return 0 if topic is None else topic.records
