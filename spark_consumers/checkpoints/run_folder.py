"""Makes the folder of a new run from the folder of the run before it,
while an older driver may still be at work.

The epoch is taken first. So what the older driver may still make final is one micro-batch, whose offsets lie
in its folder already: Spark writes `offsets/N` before any row of micro-batch N. The new run takes these
offsets along and repeats micro-batch N from them, over the state that micro-batch N - 1 left. What an older
driver still writes lies in its own folder, and nobody reads it again.

Spark never changes a file of a checkpoint: it writes new ones, and renames a draft over an old one. So on
this machine's disk a file is taken along as a hard link, which costs no room. Elsewhere it is copied.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evenflow.errors import ServiceError
from evenflow.settings.places import local_folder
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.runs import COMPLETE, epoch_of, newest_run, run_name
from spark_consumers.checkpoints.storage import storage_error, storage_errors

_LOG = logging.getLogger("evenflow.spark")
_PASSES = 10
_AT_ONCE = 16  # files that are copied at the same time
_STATE_FILE = re.compile(r"(\d+)(?:_[^.]*)?\.(?:zip|changelog|delta|snapshot)")
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EACCES})


class Files(Protocol):
    """Where the checkpoints lie. Names are relative to the stage's folder."""

    def listed(self, folder: str) -> list[str]:
        """Names of all files below a folder, at any depth, relative to that folder. Empty if there is
        none.
        """

    def take(self, source: str, target: str) -> bool:
        """Make `target` a file with the content of `source`. False if `source` is gone."""


@dataclass(frozen=True)
class LocalFiles:
    """A stage's folder on a disk of this machine, or on one that is mounted here."""

    stage: Path
    """The stage's folder."""

    def listed(self, folder: str) -> list[str]:
        """See `Files`."""
        top = self.stage / folder
        return [
            os.path.relpath(os.path.join(where, name), top)
            for where, _, names in os.walk(top)
            for name in names
        ]

    def take(self, source: str, target: str) -> bool:
        """See `Files`."""
        old, new = self.stage / source, self.stage / target
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(old, new)
            except FileExistsError:
                return True
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                shutil.copyfile(old, new)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error("the checkpoint", str(error), str(self.stage)) or ServiceError(
                f"{old} cannot be taken along to {new}: {error.strerror or error}",
                hint="do the folder and its files belong to this user?",
            ) from None
        return True


@dataclass(frozen=True)
class StoredFiles:
    """A stage's folder in a place that Hadoop reaches."""

    stage: Folder
    """The stage's folder."""

    def listed(self, folder: str) -> list[str]:
        """See `Files`."""
        return self.stage.deep_names(folder)

    def take(self, source: str, target: str) -> bool:
        """See `Files`."""
        return self.stage.copy(source, target)


def files_of(stage: Folder) -> Files:
    """The files of a stage's folder."""
    local = local_folder(stage.location)
    return StoredFiles(stage) if local is None else LocalFiles(Path(local).absolute())


def make_run(stage: Folder, epoch: int, check: Callable[[], None]) -> str:
    """Make the folder of the run with this epoch, and return its name.

    stage: the stage's folder. check: raises an error if the epoch is no longer ours. It is asked before the
    folder counts. Raises ServiceError if a file cannot be taken along.
    """
    before = newest_run(stage.names(), lambda name: COMPLETE in stage.names(name))
    # First: a disk that is full of starts that failed would let no start succeed.
    remove_older(stage, epoch, keep=before)
    name = run_name(epoch)
    if before is not None:
        _LOG.info("the run %s begins with what %s has", name, before)
        with storage_errors(stage.location):
            take_along(files_of(stage), before, name)
    check()
    Folder(stage.spark, f"{stage.location}/{name}").write(COMPLETE, f"epoch {epoch}")
    return name


def remove_older(stage: Folder, epoch: int, *, keep: str | None = None) -> None:
    """Remove the folders of all runs before this one.

    keep: the newest complete run. It is needed until a micro-batch of this run is committed.
    A driver that was fenced meanwhile may do this, too: a newer one begins with the run that is kept, or a
    newer one.
    """
    for name in stage.names():
        older = epoch_of(name)
        if older is not None and older < epoch and name != keep:
            stage.delete(name)


def take_along(files: Files, source: str, target: str) -> None:
    """Fill the folder `target` with what a run needs of the folder `source`.

    An older driver may be at work in `source`. So the last committed micro-batch is read first, and only what
    belongs to it, or to the offsets of the next one, is taken. Raises ServiceError if files vanish again and
    again.
    """
    committed = (_number(name) for name in files.listed(f"{source}/commits"))
    last = max((number for number in committed if number is not None), default=-1)
    have: set[str] = set()
    for _ in range(_PASSES):
        files_missing = False
        # A snapshot of the state (a .zip) names files of `SSTs`, which were there before it. So these are
        # listed later.
        for late in (False, True):
            names = {name for name in _needed_files(files.listed(source), last) if ("/SSTs/" in name) == late}
            copied_names = _take_files(files, source, target, sorted(names - have))
            files_missing |= not names <= have | copied_names
            have |= copied_names
        if not files_missing:
            return
    raise ServiceError(
        f"files of the checkpoint {source} vanish while they are taken along",
        hint="who deletes them? End any other driver of this query, and start this one again",
    )


def _take_files(files: Files, source: str, target: str, names: Sequence[str]) -> set[str]:
    """Take these files along. Returns those that were still there."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        outcomes = pool.map(lambda name: files.take(f"{source}/{name}", f"{target}/{name}"), names)
        return {name for name, was_taken in zip(names, outcomes, strict=True) if was_taken}


def _needed_files(names: Iterable[str], last: int) -> list[str]:
    """Those of a run's files that the next run needs. last: the last micro-batch that was committed."""
    return [name for name in names if _is_wanted(name, last)]


def _is_wanted(name: str, last: int) -> bool:
    parts = name.split("/")
    if parts[0] == COMPLETE:
        return False
    plain = parts[-1]
    if plain.startswith(".") and plain.endswith(".crc"):
        plain = plain[1:-4]  # the checksum of the file of that name
    if plain.startswith(".") or plain.endswith(".tmp"):
        return False  # a draft
    most = {"commits": last, "offsets": last + 1}.get(parts[0])
    if most is not None:
        number = _number(plain)
        return number is not None and number <= most
    state = _STATE_FILE.fullmatch(plain) if parts[0] == "state" else None
    return state is None or int(state[1]) <= last + 1


def _number(name: str) -> int | None:
    return int(name) if name.isdecimal() else None
