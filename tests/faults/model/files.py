"""A file system in memory, and folders on it with the interface of
`spark_consumers.checkpoints.folders.Folder`.

A name that ends a rename is there whole or not at all, as on a local disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evenflow.errors import ServiceError
from tests.faults.processes.world import World


@dataclass
class Files:
    """Paths and what they hold: a text, or a table.

    atomic: whether a file is created or renamed in one step, as on a disk. A store of objects looks first and
    writes then, and it renames by a copy.
    """

    world: World
    atomic: bool = True
    held: dict[str, Any] = field(default_factory=dict)

    def create(self, path: str, held: Any, what: str) -> bool:
        """Write a file unless there is one. Whether it was written. what: kind of the call."""
        if self.atomic:
            return bool(self.world.call(what, lambda: self.held.setdefault(path, held) is held))
        if path in self.held:
            return False
        self.world.call(what, lambda: self.held.__setitem__(path, held))
        return True


@dataclass(frozen=True)
class MemoryFolder:
    """A folder. spark: has the files as `files`."""

    spark: Any
    location: str

    def names(self, folder: str = "") -> list[str]:
        start = self._path(folder) + "/"
        result = {path[len(start) :].split("/")[0]: None for path in self._held if path.startswith(start)}
        return list(result)

    def exists(self, name: str) -> bool:
        whole = self._path(name)
        return any(path == whole or path.startswith(whole + "/") for path in self._held)

    def read(self, name: str) -> Any:
        return self._held.get(self._path(name))

    def write(self, name: str, text: Any) -> None:
        self._changed(lambda: self._held.__setitem__(self._path(name), text))

    def create(self, name: str, text: Any) -> bool:
        """Write a file unless there is one. Whether it was written."""
        return self.spark.files.create(self._path(name), text, "file")

    def replace(self, source: str, target: str) -> None:
        if not self._moved(source, target):
            raise ServiceError(f"{self.location}/{source} could not be renamed to {target}")

    def bring(self, source: str, target: str) -> None:
        if not self._moved(source, target) and self._path(target) not in self._held:
            raise ServiceError(f"{self.location}/{source} could not be renamed to {target}")

    def _moved(self, source: str, target: str) -> bool:
        """Rename a file. False if it is not there."""
        old, new, files = self._path(source), self._path(target), self.spark.files

        def copied() -> bool:
            if old in self._held:
                self._held[new] = self._held[old]
                return True
            return False

        def moved() -> bool:
            done = copied()
            self._held.pop(old, None)
            return done

        if files.atomic:
            return bool(self._changed(moved))
        done = bool(self._changed(copied))
        self._changed(lambda: self._held.pop(old, None))
        return done

    def deep_names(self, folder: str = "") -> list[str]:
        start = self._path(folder) + "/"
        return [path[len(start) :] for path in self._held if path.startswith(start)]

    def copy(self, source: str, target: str) -> bool:
        def deed() -> bool:
            if self._path(source) not in self._held:
                return False
            self._held[self._path(target)] = self._held[self._path(source)]
            return True

        return bool(self._changed(deed))

    def qualified(self) -> str:
        return self.location

    def delete(self, name: str) -> None:
        def deed() -> None:
            whole = self._path(name)
            for path in [path for path in self._held if path == whole or path.startswith(whole + "/")]:
                del self._held[path]

        self._changed(deed)

    def parquet_rows(self, name: str) -> int:
        return int(self._held[self._path(name)].num_rows)

    @property
    def _held(self) -> dict[str, Any]:
        return self.spark.files.held

    def _changed(self, deed: Any) -> Any:
        return self.spark.files.world.call("file", deed)

    def _path(self, name: str) -> str:
        return f"{self.location}/{name}" if name else self.location
