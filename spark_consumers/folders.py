"""Folders and small files through Hadoop's file systems, so that a URI works like a local folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenflow.errors import ServiceError

if TYPE_CHECKING:
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
        # One word from the JVM, not one a file: a folder of results may hold hundreds of thousands.
        apache = self._jvm.org.apache
        found = apache.hadoop.fs.FileUtil.stat2Paths(files.listStatus(path))
        each = apache.commons.collections4.iterators.ArrayIterator(found)
        lines = str(apache.commons.lang3.StringUtils.join(each, "\n"))
        return [line.rsplit("/", 1)[-1] for line in lines.splitlines()]

    def read(self, name: str) -> str | None:
        """Text of a file; None when it does not exist."""
        path, files = self._path(name)
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
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

    def replace(self, source: str, target: str) -> None:
        """Rename a file, over another one if need be. Raises ServiceError when the file system refuses.

        A local folder replaces at once. HDFS and object stores need the other one deleted before.
        """
        (old, files), (new, _) = self._path(source), self._path(target)
        if files.rename(old, new):
            return
        files.delete(new, False)
        if not files.rename(old, new):
            raise ServiceError(f"{self.location}/{source} could not be renamed to {target}")

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it exists."""
        path, files = self._path(name)
        files.delete(path, True)

    def parquet_rows(self, name: str) -> int:
        """How many rows a Parquet file has, by its footer."""
        path, _ = self._path(name)
        hadoop = self._jvm.org.apache.parquet.hadoop
        reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(path, self._conf))
        try:
            return int(reader.getRecordCount())
        finally:
            reader.close()

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    @property
    def _conf(self) -> Any:
        return self.spark._jsc.hadoopConfiguration()

    def _path(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self.location}/{name}" if name else self.location)
        return path, path.getFileSystem(self._conf)
