"""Folders and small files through Hadoop's file systems, so that a URI works like a local folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenflow.errors import ServiceError
from spark_consumers.checkpoints.storage import storage_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Folder:
    """A folder, which need not exist. Names are relative to it.

    Every method that reads or writes raises ServiceError when the file system refuses.
    """

    spark: SparkSession
    """Session whose Hadoop file systems reach the folder."""
    location: str
    """Path or URI of the folder."""

    def names(self, folder: str = "") -> list[str]:
        """Names of the files and folders in this folder, or in its subfolder `folder`.

        Empty if it does not exist.
        """
        with storage_errors(self.location):
            path, files = self._path(folder)
            if not files.exists(path):
                return []
            # The JVM joins all names to one string. A call to the JVM per file would take too long, as a
            # folder of results may hold hundreds of thousands of files.
            apache = self._jvm.org.apache
            collections = apache.commons.collections4
            each = collections.iterators.TransformIterator(
                collections.iterators.ArrayIterator(files.listStatus(path)),
                collections.functors.InvokerTransformer.invokerTransformer("getPath"),
            )
            lines = str(apache.commons.lang3.StringUtils.join(each, "\n"))
        return [line.rsplit("/", 1)[-1] for line in lines.splitlines()]  # the lines are whole paths

    def deep_names(self, folder: str = "") -> list[str]:
        """Names of all files below this folder, or below its subfolder `folder`, at any depth.

        They are relative to that folder. Empty if it does not exist.
        """
        with storage_errors(self.location):
            path, files = self._path(folder)
            if not files.exists(path):
                return []
            apache = self._jvm.org.apache
            listing = apache.hadoop.util.functional.RemoteIterators.toList(files.listFiles(path, True))
            each = apache.commons.collections4.iterators.TransformIterator(
                listing.iterator(),
                apache.commons.collections4.functors.InvokerTransformer.invokerTransformer("getPath"),
            )
            lines = str(apache.commons.lang3.StringUtils.join(each, "\n"))
            top = f"{files.makeQualified(path).toString()}/"
        return [line.removeprefix(top) for line in lines.splitlines()]

    def copy(self, source: str, target: str) -> bool:
        """Copy a file. False if it does not exist.

        An object store copies it by itself. From elsewhere its bytes go through this process.
        """
        from py4j.protocol import Py4JJavaError  # here for the reason that `storage_errors` gives

        with storage_errors(self.location):
            (old, files), (new, _) = self._path(source), self._path(target)
            try:
                if not _copied_in_store(self._jvm, files, old, new):
                    self._jvm.org.apache.hadoop.fs.FileUtil.copy(
                        files, old, files, new, False, True, self._conf
                    )
            except Py4JJavaError as error:
                if "FileNotFoundException" in str(error) and not files.exists(old):
                    return False
                raise
        return True

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        with storage_errors(self.location):
            path, files = self._path(name)
            return bool(files.exists(path))

    def read(self, name: str) -> str | None:
        """Text of a file. None if the file does not exist."""
        with storage_errors(self.location):
            path, files = self._path(name)
            if not files.exists(path):
                return None
            stream = files.open(path)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a new file, which appears whole or not at all."""
        with storage_errors(self.location):
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
        """Rename a file.

        A file with the new name is replaced. Raises ServiceError when the file system refuses. A local folder
        replaces in one step. On HDFS and in object stores the old file must be deleted first.
        """
        with storage_errors(self.location):
            (old, files), (new, _) = self._path(source), self._path(target)
            if _renamed(files, old, new):
                return
            files.delete(new, False)
            if _renamed(files, old, new):
                return
        raise ServiceError(f"{self.location}/{source} could not be renamed to {target}")

    def bring(self, source: str, target: str) -> None:
        """Rename a file to a name under which there is nothing, or a file with the same content.

        Where the file system does not replace a file in one step, the file that is there stays. It is never
        deleted first, as the process could end before it has the new one, or the new one could be gone.
        Raises ServiceError when the file system refuses.
        """
        with storage_errors(self.location):
            (old, files), (new, _) = self._path(source), self._path(target)
            if _renamed(files, old, new) or files.exists(new):
                return
        raise ServiceError(f"{self.location}/{source} could not be renamed to {target}")

    def qualified(self) -> str:
        """Location of this folder as Hadoop writes it, with the scheme."""
        path, files = self._path("")
        return str(files.makeQualified(path).toString())

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it exists."""
        with storage_errors(self.location):
            path, files = self._path(name)
            files.delete(path, True)

    def parquet_rows(self, name: str) -> int:
        """Number of rows of a Parquet file, by its footer."""
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
    """Whether the file was renamed. If the new name exists, some file systems return False and some raise."""
    from py4j.protocol import Py4JJavaError  # here for the reason that `storage_errors` gives

    try:
        return bool(files.rename(old, new))
    except Py4JJavaError as error:
        if "FileAlreadyExistsException" in str(error):
            return False
        raise


def _copied_in_store(jvm: Any, files: Any, old: Any, new: Any) -> bool:
    """Whether the object store has copied the object by itself.

    False for a file system that is no S3A, and for an object that the store does not copy at once (above 5
    GB, or with a key of the customer).
    """
    from py4j.protocol import Py4JJavaError

    if files.getScheme() != "s3a":
        return False
    try:
        bucket = files.getBucket()
        model = jvm.software.amazon.awssdk.services.s3.model
        request = model.CopyObjectRequest.builder().sourceBucket(bucket).sourceKey(files.pathToKey(old))
        request = request.destinationBucket(bucket).destinationKey(files.pathToKey(new)).build()
        files.getS3AInternals().getAmazonS3Client("a run of evenflow begins").copyObject(request)
    except Py4JJavaError:
        return False
    return True
