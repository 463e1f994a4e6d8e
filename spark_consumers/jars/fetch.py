"""Jars from Maven coordinates, resolved once with the Ivy that pyspark ships and cached for good.

A resolved set is a folder of the cache: `jars/<coordinates>/*.jar` and the list of these files,
`resolved.json`. The folder appears by one rename, so a folder that exists and matches its list is complete.
Any other folder is resolved again. A file lock per set makes concurrent first uses wait for one another. A
cached set needs no network.

`python -m spark_consumers.jars.fetch [connector|s3]` resolves the named sets, by default the connector.
`make setup` runs it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from evenflow.errors import ConfigError, ServiceError
from evenflow.text.spelling import did_you_mean
from spark_consumers.jars.hashes import LIST, check, listed_hashes

SCALA_VERSION = "2.13"
AWS_SDK_VERSION = "2.25.53"
"""The version that Spark 4.0 itself is built with.

S3A's Maven entry names the bundle of the whole SDK (540 MB). The modules that S3A really uses have 10 MB.
"""
LZ4 = "at.yawk.lz4:lz4-java:1.14.0"
"""The continued lz4-java, which takes the place of `org.lz4:lz4-java` 1.8.0 in each set of jars.

Spark and Kafka name 1.8.0, the last one of its group. It reads and writes beyond its buffers
(CVE-2025-12183), and may hand out what a buffer held before (CVE-2025-66566). Both have the same classes.
"""
OLD_LZ4 = "org.lz4"
"""The group of lz4-java 1.8.0, to leave out."""
TOKEN_PROVIDER = f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA_VERSION}:4.0.0"
"""A jar of the connector, in this version whatever the connector asks for.

The repository in reach when the list was made had it for 4.0.0 alone, of all of Spark 4.0. It gets Kafka's
delegation tokens, which evenflow does not use, and composes settings of the connector's clients.
"""
LOCAL_FILES = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"
"""Hadoop's file system of local files, which sets the mode of a file without a `chmod` process."""
UNLISTED = "EVENFLOW_UNLISTED_JARS"
"""The variable that is 1 if sets of jars are taken of which no SHA-256 is known."""
_LIST = "resolved.json"
_SHIPPED_WITH_SPARK = (
    "io.netty",
    "org.apache.httpcomponents",
    "commons-codec",
    "commons-logging",
    "org.slf4j",
)
_ATTEMPTS = 3
_ATTEMPT_SECONDS = 600


@dataclass(frozen=True)
class Coordinate:
    """A Maven coordinate, written `group:artifact:version`."""

    group: str
    """Publisher of the artifact, such as "org.apache.spark"."""
    artifact: str
    """Name of the artifact within the group."""
    version: str
    """Version of the artifact, such as "4.0.1"."""

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        """The coordinate that is written `group:artifact:version`. Raises ConfigError for any other text."""
        parts = text.split(":")
        if len(parts) != 3 or not all(re.fullmatch(r"[A-Za-z0-9._-]+", part) for part in parts):
            raise ConfigError(f"{text!r} is not a Maven coordinate", hint="write group:artifact:version")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def folder(self) -> str:
        """Name on disk. It has no colons, which would split a Java class path."""
        return f"{self.group}_{self.artifact}_{self.version}"


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/evenflow`, by default `~/.cache/evenflow` (not created here)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "evenflow"


def java_command() -> str:
    """Path of the `java` to use: that of JAVA_HOME if it is set, else the first on the PATH.

    Raises ServiceError.
    """
    home = os.environ.get("JAVA_HOME")
    java_path = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java_path is None:
        where = f"JAVA_HOME ({home}) has no bin/java" if home else "no java on the PATH"
        raise ServiceError(
            f"Java is missing: {where}",
            hint="install a Java 17 runtime, or set JAVA_HOME to one; then run it again",
        )
    return java_path


def spark_version() -> str:
    """Version of the installed pyspark. pyspark is not imported for that.

    Raises ServiceError if it is missing.
    """
    try:
        return distribution("pyspark").version
    except PackageNotFoundError:
        raise ServiceError("pyspark is not installed", hint="run `make setup`") from None


def spark_kafka_jars() -> list[Path]:
    """Jars of Spark's Kafka connector for the installed pyspark, and of `LOCAL_FILES`, without those that
    pyspark ships.

    `LZ4` is one of them: before pyspark's own jars on a class path it hides the lz4-java that pyspark ships.
    """
    shipped = {_artifact_name(jar) for jar in spark_jars_dir().glob("*.jar")}
    name = f"spark-sql-kafka-0-10_{SCALA_VERSION}"
    jars = resolve(
        "org.apache.spark",
        name,
        spark_version(),
        *(LZ4, LOCAL_FILES),
        without=(OLD_LZ4, "org.apache.hadoop"),
        fixed=(TOKEN_PROVIDER,),
    )
    hiding = {Coordinate.parse(LZ4).artifact}
    return [jar for jar in jars if _artifact_name(jar) not in shipped - hiding]


def s3_jars() -> list[Path]:
    """Jars of Hadoop's S3A for the Hadoop version that pyspark ships, without the jars that pyspark ships."""
    shipped = next(spark_jars_dir().glob("hadoop-client-api-*.jar"), None)
    if shipped is None:
        raise ServiceError(
            f"pyspark ships no Hadoop in {spark_jars_dir()}", hint="reinstall it: `make setup`"
        )
    hadoop = shipped.stem.removeprefix("hadoop-client-api-")
    sdk = (f"software.amazon.awssdk:{name}:{AWS_SDK_VERSION}" for name in ("s3-transfer-manager", "sts"))
    return resolve(
        "org.apache.hadoop",
        "hadoop-aws",
        hadoop,
        *sdk,
        without=(*_SHIPPED_WITH_SPARK, "software.amazon.awssdk:bundle"),
    )


def resolve(
    group: str,
    artifact: str,
    version: str,
    *more: str,
    without: Sequence[str] = (),
    fixed: Sequence[str] = (),
    manifest: Path | None = None,
) -> list[Path]:
    """All runtime jars of the coordinates together, one version of each module, sorted by name.

    more: further coordinates as `group:artifact:version`. without: dependencies to leave out, as `group` or
    `group:artifact`. fixed: coordinates of dependencies that come in this version, whatever is asked for.
    manifest: the file with the SHA-256 of the jars, None for that of evenflow's own sets. Raises ServiceError
    without Java or network, and for jars that the manifest does not list.
    """
    coordinates = [Coordinate(group, artifact, version), *map(Coordinate.parse, more)]
    versions = list(map(Coordinate.parse, fixed))
    folder = cache_dir() / "jars" / "+".join(named.folder for named in (*coordinates, *versions))
    cached = _cached(folder)
    if cached is not None:
        return cached
    with _locked(folder):
        # Another process may have resolved the set while this one waited for the lock.
        cached = _cached(folder)
        if cached is not None:
            return cached
        _resolve_into(folder, _ivy_module(coordinates, without, versions), listed_hashes(manifest))
    cached = _cached(folder)
    if cached is None:
        raise ServiceError(
            f"the resolved jars vanished from {folder}", hint="is something emptying the cache?"
        )
    return cached


def _cached(folder: Path) -> list[Path] | None:
    """Jars of a complete folder.

    None if the folder is missing, or if a file in it is missing or cut short.
    """
    try:
        sizes: dict[str, int] = json.loads((folder / _LIST).read_text(encoding="utf-8"))
        complete = all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return None
    # No set is empty, so an empty list is a broken one.
    return [folder / name for name in sorted(sizes)] if complete and sizes else None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = (folder.parent / f"{folder.name}.lock").open("w")
    except OSError as error:
        raise ServiceError(
            f"the cache folder {folder.parent} cannot be written: {error}",
            hint="set XDG_CACHE_HOME to another folder",
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _resolve_into(folder: Path, module: str, hashes_by_set: Mapping[str, Mapping[str, str]]) -> None:
    """Resolve in a folder beside `folder`, then rename. The caller holds the lock of `folder`.

    Raises ServiceError for a set of other files than are listed, or that is not listed.
    """
    # With the lock held, a partial folder can only come from a process that was killed.
    for leftover in folder.parent.glob(f"{folder.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
    try:
        jars = work / "jars"
        _run_ivy(work, jars, module)
        if not check(jars, folder.name, hashes_by_set):
            _refuse_unlisted(folder.name)
        sizes = {jar.name: jar.stat().st_size for jar in jars.iterdir()}
        (jars / _LIST).write_text(json.dumps(sizes, indent=1, sort_keys=True), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        jars.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _refuse_unlisted(name: str) -> None:
    """Raise ServiceError for a set of this name, which is not listed, unless somebody has asked for such."""
    if os.environ.get(UNLISTED) != "1":
        raise ServiceError(
            f"no SHA-256 of the jars of {name} is known, so nobody vouches for them",
            hint=(
                f"install the versions of requirements.lock, whose jars {LIST.name} lists. Or list these:"
                f" fetch them again with {UNLISTED}=1, compare them with another source, and run"
                f" `python -m spark_consumers.jars.hashes --write {name}`"
            ),
        )
    print(f"no SHA-256 of {name} is known: it is taken as it came ({UNLISTED}=1)", file=sys.stderr)


def _run_ivy(work: Path, jars: Path, text: str) -> None:
    """Run Ivy once over a module of this text, so that each module gets one version.

    The configuration `default` of a Maven module is its runtime: compile and runtime dependencies of any
    packaging, no sources, no javadoc. (`-types jar` would lose modules packaged as bundles, such as
    snappy-java.) A failed download is tried again. Ivy then goes on with what its cache in `work` holds.
    Raises ServiceError after the last attempt.
    """
    module = work / "ivy.xml"
    module.write_text(text, encoding="utf-8")
    command = [java_command(), "-jar", str(_ivy_jar()), "-cache", str(work / "ivy"), "-ivy", str(module)]
    command += ["-confs", "default", "-retrieve", f"{jars}/[artifact]-[revision](-[classifier]).[ext]"]
    output = ""
    for _ in range(_ATTEMPTS):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_ATTEMPT_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            output = f"no end after {_ATTEMPT_SECONDS} s"
            continue
        output = done.stdout + done.stderr
        # An exit status of 0 alone does not prove that there is a jar.
        if done.returncode == 0 and jars.is_dir() and any(jars.glob("*.jar")):
            return
    raise ServiceError(
        f"cannot resolve {jars.parent.name.partition('.partial-')[0]}:\n  {_why(output)}",
        hint=(
            "the first use needs a network that reaches a Maven repository (proxy: JAVA_TOOL_OPTIONS); or"
            f" copy the folder {cache_dir() / 'jars'} from a machine that has it"
        ),
    )


def _ivy_module(
    coordinates: Sequence[Coordinate], without: Sequence[str], versions: Sequence[Coordinate]
) -> str:
    """The text of a module that depends on all coordinates."""
    dependencies = "".join(
        f"<dependency org={quoteattr(c.group)} name={quoteattr(c.artifact)} rev={quoteattr(c.version)}"
        ' conf="default->default"/>'
        for c in coordinates
    )
    excluded = "".join(f"<exclude org={quoteattr(group)} module={quoteattr(name or '*')}/>" for group, _,
    name in (
        word.partition(":") for word in without
    ))  # fmt: skip
    overriding = "".join(
        f"<override org={quoteattr(c.group)} module={quoteattr(c.artifact)} rev={quoteattr(c.version)}/>"
        for c in versions
    )
    return (
        '<ivy-module version="2.0"><info organisation="evenflow" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}{excluded}{overriding}</dependencies></ivy-module>"
    )


def _why(output: str) -> str:
    """The lines of Ivy's report that say what failed, without the pages of addresses that Ivy tried."""
    lines = (line.strip(" :\t") for line in output.splitlines())
    words = r"unresolved dependency|\S+#\S+: not found|\[FAILED|Error|Exception|no end"
    telling = [line for line in lines if re.match(words, line)]
    return "\n  ".join(list(dict.fromkeys(telling))[:5]) or "Ivy reported no reason"


def spark_jars_dir() -> Path:
    """The folder of the jars that pyspark ships. Raises ServiceError."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError("pyspark is not installed", hint="run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "jars"


def _ivy_jar() -> Path:
    ivy_jars = sorted(spark_jars_dir().glob("ivy-*.jar"))
    if not ivy_jars:
        raise ServiceError(f"pyspark ships no Ivy in {spark_jars_dir()}", hint="reinstall it: `make setup`")
    return ivy_jars[-1]


def _artifact_name(jar: Path) -> str:
    """`kafka-clients-4.1.0.jar` -> `kafka-clients`."""
    return re.sub(r"-\d[^/]*$", "", jar.stem)


_SETS = {"connector": spark_kafka_jars, "s3": s3_jars}


def fetch(names: Sequence[str], sets: Mapping[str, Callable[[], list[Path]]]) -> int:
    """Resolve the sets of these names, and print on standard error where they are. Returns the exit
    status.
    """
    try:
        for name in names:
            if name not in sets:
                raise ConfigError(
                    f"no set of jars is called {name!r}{did_you_mean(name, sets)}",
                    hint=f"known: {', '.join(sets)}. The broker's: python -m workbench.local.broker_jars",
                )
        for name in names:
            jars = sets[name]()
            print(f"{name}: {len(jars)} jars in {jars[0].parent}", file=sys.stderr)
    except (ServiceError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(fetch(sys.argv[1:] or ["connector"], _SETS))
