"""Whether a downloaded file is the data set that it should be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal

from evenflow.errors import ConfigError
from evenflow.sources.datasets import DATA_SETS
from evenflow.sources.recorded import DataSet
from evenflow.sources.source import SourceOptions
from evenflow.text.spelling import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Download:
    """What a file is, compared with its data set."""

    data_set: str
    """The data set that the file should be, by its name in `DATA_SETS`."""
    path: str
    """The file as the user named it."""
    sha256: str
    """Checksum of the file as it lies there, in hexadecimal digits."""
    known_as: str | None
    """The file of the data set that has this checksum. None: no checksum is known, or it is another one."""
    checksums_known: int
    """For how many files of the data set a checksum is known."""
    checksum: Literal["right", "wrong", "unknown"]
    """How the checksum compares with those that are known. unknown: none is."""
    rows: int | None
    """None if the file does not fit the data set."""
    columns: tuple[str, ...]
    """Columns of the data set."""
    same_time: int | None
    """Event time (ms) that all rows have. None if they differ, or if the file does not fit."""
    problem: str | None
    """What is wrong, with the first bad row if it is a row. None if every row fits."""

    def as_json(self) -> dict[str, Any]:
        """All fields, as plain JSON. The names are stable."""
        return asdict(self)


def data_set(name: str) -> DataSet:
    """The data set of this name. ConfigError if its files cannot be checked."""
    if name not in DATA_SETS:
        raise ConfigError(
            f"no data set {name!r} has files to check{did_you_mean(name, DATA_SETS)}",
            hint=f"known: {', '.join(DATA_SETS)}",
        )
    return DATA_SETS[name]


def check_download(name: str, path: Path | None = None) -> Download:
    """Compare a file with the data set of this name: its columns, every row and its checksum.

    path: None for the file that a package has installed. A file that does not fit is no error: `problem` says
    why. ConfigError for an unknown name, or for a file that is not there.
    """
    reference = data_set(name)
    if path is None:
        if reference.installed is None:
            raise ConfigError(f"no package has the file of {name}", hint="name the downloaded file")
        path = reference.installed()
    try:
        with path.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}", hint="name the downloaded file"
        ) from None
    rows, same_time, problem = None, None, None
    try:
        source = reference.open(str(path), SourceOptions())
        rows, same_time = source.rows, source.same_time
    except ConfigError as error:
        problem = error.message
    return Download(
        data_set=name,
        path=str(path),
        sha256=digest,
        known_as=reference.sha256.get(digest),
        checksum="unknown" if not reference.sha256 else "right" if digest in reference.sha256 else "wrong",
        checksums_known=len(reference.sha256),
        rows=rows,
        columns=tuple(reference.columns),
        same_time=same_time,
        problem=problem,
    )
