"""The processes of a demo: started with one settings file, watched, and ended by their own process ids."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from evenflow.errors import ServiceError
from evenflow.plugins import CALLED_IN
from evenflow.progress import PartitionState
from evenflow.settings import Settings, save_settings
from partitioner_service.kafka.committed_state import all_states
from workbench.demo.interrupts import Interrupts
from workbench.local.processes import ChildProcess

_LOOK_SECONDS = 0.3


class Services:
    """Partitioner instances, one Spark application and, if wanted, a controller.

    To be used as a context manager: leaving it ends all processes. folder: for the settings file and the
    logs. instances: how many partitioners. interrupts: asked whenever this object waits.
    """

    def __init__(self, settings: Settings, folder: Path, *, instances: int, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._file = folder / "settings.json"
        self._folder = folder
        save_settings(settings, self._file)
        # The user's variables would override the settings file.
        self._environment = {n: v for n, v in os.environ.items() if not n.startswith("EVENFLOW_")}
        # The services run in `folder`, and a partitioner of the user's own lies where the command was called.
        self._environment.setdefault(CALLED_IN, os.getcwd())
        self._partitioners: list[ChildProcess] = []
        self.spark: ChildProcess | None = None
        self._control: ChildProcess | None = None
        try:
            self.spark = self._start("spark", "aggregate", "--until-ended", "--unchecked")
            for number in range(instances):
                name = f"partitioner-{number}"
                self._partitioners.append(
                    self._start(name, "partition", "--unchecked", "--instance", str(number))
                )
        except BaseException:
            # The caller's `with` has not begun yet, so nothing else would end the processes.
            self.stop()
            raise

    def wait(self, done: Callable[[], bool], look: Callable[[], None]) -> None:
        """Call `look` every 0.3 s until `done` returns true. Raises what `check` raises."""
        pause = threading.Event()
        while not done():
            self.check()
            look()
            pause.wait(_LOOK_SECONDS)

    def check(self) -> None:
        """Raise ServiceError, with the end of the log, if a process failed.
        Raise KeyboardInterrupt after Ctrl-C.
        """
        self._interrupts.check()
        for process in self._all():
            if process.returncode not in (None, 0):
                raise ServiceError(
                    f"{process.name} ended with status {process.returncode}:\n{process.tail(25)}",
                )

    def stop_partitioners(self) -> None:
        """Send SIGTERM. Each partitioner then finishes its block and commits."""
        for process in self._partitioners:
            _end(process)

    def start_control(self) -> None:
        """Start a controller as well."""
        self._control = self._start("control", "control")

    def stop_control(self) -> None:
        """Send SIGTERM to the controller, if there is one. The last plan stays in force."""
        if self._control is not None:
            _end(self._control)

    def to_the_end(self, settings: Settings, look: Callable[[dict[int, PartitionState]], None]) -> None:
        """Wait until the input has ended and everything is emitted.
        look: gets the committed states meanwhile.
        """
        states: dict[int, PartitionState] = {}

        def ended() -> bool:
            states.update(all_states(settings))
            return len(states) == settings.input_partitions and all(state.ended for state in states.values())

        self.wait(ended, lambda: look(states))
        look(states)
        self.stop_partitioners()
        self.stop_control()
        spark = self.spark
        assert spark is not None
        self.wait(lambda: not spark.alive, lambda: look(states))
        self.check()
        look(states)

    def stop(self) -> None:
        """End every process that still runs."""
        for process in self._all():
            if process.alive:
                process.terminate(10)

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _all(self) -> list[ChildProcess]:
        return [
            *self._partitioners,
            *(process for process in (self._control, self.spark) if process is not None),
        ]

    def _start(self, name: str, *words: str) -> ChildProcess:
        command = [sys.executable, "-m", "cli.main", "--config", str(self._file), *words]
        return ChildProcess(
            command, log=self._folder / f"{name}.log", name=name, env=self._environment, cwd=self._folder
        )


def _end(process: ChildProcess) -> None:
    # A busy machine may take long to end a process that has committed everything.
    status = process.terminate(60)
    if status != 0:
        raise ServiceError(f"{process.name} ended with status {status}:\n{process.tail(25)}")
