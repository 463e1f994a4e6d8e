"""Folders and small files through Hadoop's file systems, so that a URI works like a local folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenflow.errors import ServiceError
from spark_consumers.storage import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Folder:
    """A folder, which need not exist. Names are relative to it. Every method raises ServiceError where it is refused."""

    spark: SparkSession
    location: str

    def names(self, folder: str = "") -> list[str]:
        """Names of what lies in it (or in a folder of it). None when it does not exist."""
        with told(self.location):
            path, files = self._path(folder)
            if not files.exists(path):
                return []
            # One word from the JVM, not one a file: a folder of results may hold hundreds of thousands.
            apache = self._jvm.org.apache
            collections = apache.commons.collections4
            each = collections.iterators.TransformIterator(
                collections.iterators.ArrayIterator(files.listStatus(path)),
                collections.functors.InvokerTransformer.invokerTransformer("getPath"),
            )
            lines = str(apache.commons.lang3.StringUtils.join(each, "\n"))
        return [line.rsplit("/", 1)[-1] for line in lines.splitlines()]

    def read(self, name: str) -> str | None:
        """Text of a file. None when it does not exist."""
        with told(self.location):
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
        with told(self.location):
            path, files = self._path(name)
            draft, _ = self._path(f".{name}.tmp")
            stream = files.create(draft, True)
            try:
                stream.write(text.encode())
            finally:
                stream.close()
            if not files.rename(draft, path):
                raise ServiceError(f"{self.location}/.{name}.tmp could not be renamed to {name}")

    def replace(self, source: str, target: str) -> None:
        """Rename a file, over another one if need be. Raises ServiceError when the file system refuses.

        A local folder replaces at once. HDFS and object stores need the other one deleted before.
        """
        with told(self.location):
            (old, files), (new, _) = self._path(source), self._path(target)
            if _renamed(files, old, new):
                return
            files.delete(new, False)
            if _renamed(files, old, new):
                return
        raise ServiceError(f"{self.location}/{source} could not be renamed to {target}")

    def qualified(self) -> str:
        """Its place as Hadoop writes it, with the scheme."""
        path, files = self._path("")
        return str(files.makeQualified(path).toString())

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it exists."""
        with told(self.location):
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


def _renamed(files: Any, old: Any, new: Any) -> bool:
    """Whether it was: some file systems say no, and some raise, where there is one of the new name."""
    from py4j.protocol import Py4JJavaError  # as in `told`

    try:
        return bool(files.rename(old, new))
    except Py4JJavaError as error:
        if "FileAlreadyExistsException" in str(error):
            return False
        raise
