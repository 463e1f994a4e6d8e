"""Folders that a query writes, on this machine or in an object store,
looked at without Spark (Arrow's file systems).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from pyarrow import fs

from evenflow.errors import ServiceError
from evenflow.settings import Settings
from evenflow.settings.places import local_folder

_S3A = "spark.hadoop.fs.s3a."


@dataclass(frozen=True, kw_only=True)
class QueryFolder:
    """A folder, which need not exist.
    Every method raises ServiceError if the folder cannot be read or removed.
    """

    place: str
    """The folder as the settings name it, a path or a URI."""
    system: fs.FileSystem
    """File system that holds the folder."""
    path: str
    """The folder's path within that file system."""

    def exists(self) -> bool:
        """Whether the folder exists."""
        with self._storage_errors():
            return bool(self.system.get_file_info(self.path).type != fs.FileType.NotFound)

    def files(self, folder: str = "") -> list[fs.FileInfo]:
        """All files below the folder, or below `folder` in it, at any depth."""
        chosen = fs.FileSelector(f"{self.path}/{folder}".rstrip("/"), recursive=True, allow_not_found=True)
        with self._storage_errors():
            return [info for info in self.system.get_file_info(chosen) if info.is_file]

    def names(self, folder: str = "") -> list[str]:
        """Names of the files and folders that lie directly in the folder, or in `folder` in it."""
        with self._storage_errors():
            chosen = fs.FileSelector(f"{self.path}/{folder}".rstrip("/"), allow_not_found=True)
            infos = self.system.get_file_info(chosen)
            return [info.base_name for info in infos]

    def remove(self) -> None:
        """Remove the folder and all that is in it, if it exists."""
        if self.exists():
            with self._storage_errors():
                self.system.delete_dir(self.path)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error).splitlines()[0]
            raise ServiceError(
                f"{self.place} cannot be reached: {reason}",
                hint=(
                    "in an object store: are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set, and is the"
                    " endpoint in [spark.conf] right? Else: are the folder's rights yours?"
                ),
            ) from None


def folder_at(settings: Settings, place: str) -> QueryFolder | None:
    """The folder at a place, which is a path or a URI. None for a URI that only Spark can reach."""
    folder = local_folder(place)
    if folder is not None:
        return QueryFolder(place=place, system=fs.LocalFileSystem(), path=os.path.abspath(folder))
    parts = urlsplit(place)
    if parts.scheme != "s3a":
        return None
    return QueryFolder(
        place=place, system=_s3(settings.spark.conf), path=f"{parts.netloc}{parts.path}".rstrip("/")
    )


def _s3(conf: dict[str, str]) -> fs.FileSystem:
    """The S3 file system as `spark.conf` tells Hadoop to reach it."""
    endpoint = conf.get(f"{_S3A}endpoint")
    secure = conf.get(f"{_S3A}connection.ssl.enabled", "true") == "true"
    scheme, _, address = endpoint.rpartition("://") if endpoint else ("", "", "")
    return fs.S3FileSystem(
        endpoint_override=address or None,
        scheme=scheme or ("https" if secure else "http"),
        region=conf.get(f"{_S3A}endpoint.region"),
        force_virtual_addressing=False,
    )
