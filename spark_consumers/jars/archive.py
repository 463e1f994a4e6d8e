"""Archives of classes (Java's class data sharing), of Spark and of the embedded broker.

A driver maps its classes instead of loading them.

A driver loads some 20,000 classes before its first result, which takes a third of the CPU time until then.
An archive is a file of the cache, `classes/<key>.jsa`. The key is a hash of everything that must not differ.
Java itself checks once more whether the archive was made of the same jars. A driver or a broker without
archive starts later, but works the same. `make setup` makes the archives (`workbench/local/archive.py`).
Delete the folder to have them made again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from spark_consumers.jars.fetch import (
    cache_dir,
    java_command,
    spark_jars_dir,
    spark_kafka_jars,
    spark_version,
)

_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java must not warn in a service's output if an archive does not fit (with a heap of 32 GiB, say)."""


def archive_path() -> Path:
    """Path of the archive of this Java, this pyspark and these jars. The file need not exist."""
    return path_of([spark_version(), driver_class_path()], spark_jars_dir().glob("*.jar"))


def path_of(qualifiers: Iterable[str], jars: Iterable[Path]) -> Path:
    """Path of the archive of this Java and these jars. qualifiers: all else that tells archives apart."""
    java = Path(os.path.realpath(java_command()))
    parts = [str(java), str(java.stat().st_mtime_ns), *qualifiers]
    # Java compares paths and times of the jars, not only their content. So the key does, too.
    for jar in sorted(jars):
        parts.append(f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}")
    return cache_dir() / "classes" / f"{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"


def driver_class_path() -> str:
    """The jars that come before pyspark's own on the driver's class path.

    Classes that Spark's own class loaders load later cannot be archived.
    """
    return os.pathsep.join(str(jar) for jar in spark_kafka_jars())


def using_archive() -> str:
    """Java options that use the archive of Spark's classes. An empty string if there is no archive."""
    return " ".join(using(archive_path()))


def using(path: Path) -> list[str]:
    """Java options that use this archive. None if there is no such file."""
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", *_QUIET] if path.exists() else []


def making(path: Path) -> list[str]:
    """Java options that make Java write, when it ends, all classes that it has loaded to this file."""
    return [f"-XX:ArchiveClassesAtExit={path}", *_QUIET]
