"""Folders and small files through Hadoop's file systems, so that a URI works like a local folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Folder:
    """A folder, which need not exist. Names are relative to it."""

    spark: SparkSession
    location: str

    def names(self, folder: str = "") -> list[str]:
        """Names of what lies in it (or in a folder of it); none when it does not exist."""
        path, files = self._path(folder)
        if not files.exists(path):
            return []
        return [str(status.getPath().getName()) for status in files.listStatus(path)]

    def read(self, name: str) -> str | None:
        """Text of a file; None when it does not exist."""
        path, files = self._path(name)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return str(self.spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """A new file, there as a whole or not at all."""
        path, files = self._path(name)
        draft, _ = self._path(f".{name}.tmp")
        stream = files.create(draft, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        files.rename(draft, path)

    def _path(self, name: str) -> tuple[Any, Any]:
        whole = f"{self.location}/{name}" if name else self.location
        path = self.spark._jvm.org.apache.hadoop.fs.Path(whole)
        return path, path.getFileSystem(self.spark._jsc.hadoopConfiguration())
