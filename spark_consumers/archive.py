"""An archive of Spark's classes (Java's class data sharing), so that a driver maps them instead of loading them.

A driver loads some 20,000 classes before its first result: a third of the CPU time until then. The archive is a
file of the cache, `classes/<key>.jsa`. The key holds all that must not differ, and Java checks once more that its
jars are those it was made of. A driver without archive only starts later. `make setup` makes it
(`workbench/archive.py`). Delete the folder to make it anew.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from spark_consumers.jars import cache_dir, java_command, spark_jars_dir, spark_kafka_jars, spark_version

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""An archive that does not fit (a heap of 32 GiB, say) is no reason to write into a service's output."""


def archive_path() -> Path:
    """Where the archive of this Java, this pyspark and these jars is, or would be."""
    java = Path(os.path.realpath(java_command()))
    parts = [str(java), str(java.stat().st_mtime_ns), spark_version(), driver_class_path()]
    # Java takes an archive only for the very files it was made of: their places and times, not only their content.
    for jar in sorted(spark_jars_dir().glob("*.jar")):
        parts.append(f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}")
    return cache_dir() / "classes" / f"{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"


def driver_class_path() -> str:
    """What stands before pyspark's own jars. Classes that Spark's own loaders bring cannot be archived."""
    return os.pathsep.join(str(jar) for jar in spark_kafka_jars())


def using_archive() -> str:
    """Java options that use the archive. None when there is none."""
    path = archive_path()
    return f"-XX:SharedArchiveFile={path} -Xshare:auto {_QUIET}" if path.exists() else ""


def making_archive(path: Path) -> str:
    """Java options that write all classes that were loaded to this file, when Java ends."""
    return f"-XX:ArchiveClassesAtExit={path} {_QUIET}"
