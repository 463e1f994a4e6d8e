"""Reads files, compressed or not, as bytes into memory. Every error says which file is wrong and what to
do.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from evenflow.errors import ConfigError

_HEAD = 1 << 16
_PARQUET = b"PAR1"
"""What a Parquet file begins and ends with."""
_BAD_ZIP = (zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What `zipfile` raises. RuntimeError: the archive is encrypted.
NotImplementedError: its compression is unknown.
"""
ByteStream = IO[bytes] | gzip.GzipFile


def unwrapped_name(path: Path) -> str:
    """The file's name in lower case without .gz or .zip. It tells the format."""
    name = path.name.lower()
    for wrapping in (".gz", ".zip"):
        name = name.removesuffix(wrapping)
    return name


def read_single(path: Path) -> bytes:
    """Content of a plain file, a .gz, or a .zip that holds exactly one file.
    ConfigError if it cannot be read.
    """
    raw = _read(path)
    name = path.name.lower()
    if name.endswith(".gz"):
        return _gunzip(path, raw)
    if not name.endswith(".zip"):
        return raw
    members = _unzip(path, raw)
    if len(members) != 1:
        raise ConfigError(
            f"{path} holds {len(members)} files ({', '.join(name for name, _ in members[:5])})",
            hint="unpack it and name the one to replay",
        )
    return members[0][1]


@contextmanager
def opened_single(path: Path) -> Iterator[ByteStream]:
    """What `read_single` reads, as a stream, for a caller that needs only its beginning.

    Raises the exceptions of the libraries, not ConfigError.
    """
    name = path.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            members = _files_in(archive)
            if len(members) != 1:
                raise zipfile.BadZipFile(f"{len(members)} files")
            with archive.open(members[0]) as stream:
                yield stream
    else:
        with gzip.open(path) if name.endswith(".gz") else path.open("rb") as stream:
            yield stream


def head_lines(path: Path, encoding: str) -> list[str]:
    """The lines of the first 64 KiB that are not blank. ConfigError if the file is not in the encoding."""
    try:
        with opened_single(path) as stream:
            head = stream.read(_HEAD)
    except (OSError, EOFError, zlib.error, *_BAD_ZIP):
        head = read_single(path)[:_HEAD]  # raises a ConfigError that says what is wrong
    whole = len(head) < _HEAD
    # The head may end within a character, which is no error to an incremental decoder. It may end within a
    # line too, so its last line is dropped below.
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=whole)
    except (UnicodeDecodeError, LookupError) as error:
        raise ConfigError(
            f"{path} is not in the encoding given: {error}", hint="give --encoding, e.g. latin-1"
        ) from None
    lines = re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff"))
    return [line for line in (lines if whole else lines[:-1] or lines) if line.strip()]


def is_parquet(path: Path) -> bool:
    """Whether the file begins and ends as Parquet does. False for a folder and for what cannot be read."""
    try:
        with path.open("rb") as stream:
            begins = stream.read(len(_PARQUET)) == _PARQUET
            return begins and stream.seek(-len(_PARQUET), 2) > 0 and stream.read() == _PARQUET
    except OSError:
        return False


def read_many(path: Path, *, suffix: str) -> list[tuple[str, bytes]]:
    """(name, content) of a file, or of every file that ends with `suffix` in a folder,
    .zip or .tar.gz, by name.

    ConfigError if there is no such file or one cannot be read.
    """
    name = path.name.lower()
    if path.is_dir():
        members = [(str(item), _read(item)) for item in path.rglob(f"*{suffix}") if item.is_file()]
    elif name.endswith((".tar.gz", ".tgz")):
        members = _untar(path)
    elif name.endswith(".zip"):
        members = _unzip(path, _read(path))
    else:
        return [(str(path), read_single(path))]
    chosen = sorted((item for item in members if item[0].lower().endswith(suffix)), key=lambda item: item[0])
    if not chosen:
        raise ConfigError(
            f"{path} holds no {suffix} file", hint=f"name a folder or archive with {suffix} files"
        )
    return chosen


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}", hint="check the path") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None


def _gunzip(path: Path, raw: bytes) -> bytes:
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(
            f"{path} is not a readable gzip file: {error}",
            hint="it may be cut short or not compressed at all: fetch it again, or take off .gz",
        ) from None


def _unzip(path: Path, raw: bytes) -> list[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return [(item.filename, archive.read(item)) for item in _files_in(archive)]
    except (*_BAD_ZIP, zlib.error, EOFError) as error:
        raise ConfigError(
            f"{path} is not a readable zip file: {error}", hint="fetch it again, or unpack it yourself"
        ) from None


def _files_in(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [
        item for item in archive.infolist() if not item.is_dir() and not item.filename.startswith("__MACOSX/")
    ]


def _untar(path: Path) -> list[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(_read(path)), mode="r:gz") as archive:
            members = []
            for item in archive:
                content = archive.extractfile(item) if item.isfile() else None
                if content is not None:
                    members.append((item.name, content.read()))
            return members
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise ConfigError(
            f"{path} is not a readable .tar.gz file: {error}", hint="fetch it again, or unpack it yourself"
        ) from None
