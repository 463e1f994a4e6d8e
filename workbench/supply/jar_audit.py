"""What is known against the jars: `python -m workbench.supply.jar_audit`, a part of `make audit`.

Over the network it asks the public database OSV about each jar that the installed pyspark ships, that `make
setup` has fetched, and about what is shaded into them. A jar names its Maven coordinates itself
(`pom.properties`), or `jar_groups.csv` has its group. A jar of which nobody knows the coordinates is a
failure, and so is a database that does not answer.

Of two jars of one artifact the class path takes the fetched one, so pyspark's own is not asked about.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from evenflow.errors import EvenflowError, ServiceError
from spark_consumers.jars.fetch import Coordinate, s3_jars, spark_jars_dir, spark_kafka_jars
from workbench.local.broker_jars import kafka_broker_jars

DATABASE = "https://api.osv.dev/v1/querybatch"
GROUPS = Path(__file__).with_name("jar_groups.csv")
"""Columns artifact and group, of jars that do not name themselves."""
_AT_ONCE = 500
_PATIENCE = 60.0
_NAMES_ITSELF = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")


def groups() -> dict[str, str]:
    """Artifact -> group, of jars that do not name themselves."""
    with GROUPS.open(encoding="utf-8", newline="") as file:
        return {row["artifact"]: row["group"] for row in csv.DictReader(file)}


def coordinates(jar: Path, groups: Mapping[str, str]) -> set[Coordinate]:
    """Of this jar and of what is shaded into it. Empty if neither the jar nor `groups` says what it is."""
    found = set(_named_inside(jar))
    artifact, version = _named_by_file(jar)
    if artifact in groups and not any(one.artifact == artifact for one in found):
        found.add(Coordinate(groups[artifact], artifact, version))
    return found


def _named_by_file(jar: Path) -> tuple[str, str]:
    """`netty-all-4.1.118.Final-linux.jar` -> `netty-all`, `4.1.118.Final`."""
    artifact, _, rest = jar.stem.partition("-")
    while rest and not rest[0].isdigit():
        more, _, rest = rest.partition("-")
        artifact = f"{artifact}-{more}"
    version = re.match(r"[^-]*(-M\d+)?", rest)
    return artifact, version[0] if version else ""


def _named_inside(jar: Path) -> Iterator[Coordinate]:
    with zipfile.ZipFile(jar) as content:
        for name in filter(_NAMES_ITSELF.fullmatch, content.namelist()):
            lines = content.read(name).decode(errors="replace").splitlines()
            fields = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
            values = [fields.get(key, "").strip() for key in ("groupId", "artifactId", "version")]
            if all(values):
                yield Coordinate(*values)


def findings(artifacts: Sequence[Coordinate], *, database: str = DATABASE) -> dict[Coordinate, list[str]]:
    """The identifiers of what the database knows against each of these. Absent: nothing.

    Raises ServiceError if it does not answer.
    """
    against: dict[Coordinate, list[str]] = {}
    for first in range(0, len(artifacts), _AT_ONCE):
        some = artifacts[first : first + _AT_ONCE]
        queries = [{"package": {"purl": f"pkg:maven/{c.group}/{c.artifact}@{c.version}"}} for c in some]
        answers = _answers(database, queries)
        if len(answers) != len(some):
            raise ServiceError(f"{database} has answered {len(answers)} of {len(some)} questions")
        for artifact, answer in zip(some, answers, strict=True):
            if identifiers := sorted(each["id"] for each in answer.get("vulns", ())):
                against[artifact] = identifiers
    return against


def _answers(database: str, queries: Sequence[Mapping[str, object]]) -> list[dict[str, list[dict[str, str]]]]:
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(database, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return list(json.load(answer)["results"])
    except (OSError, ValueError, KeyError) as error:
        raise ServiceError(
            f"{database} does not answer: {error}",
            hint="nothing is known about the jars: ask again from a network that reaches it",
        ) from None


def loaded_jars() -> list[Path]:
    """The jars that evenflow's processes load, without those of pyspark that a fetched one hides."""
    fetched = [*spark_kafka_jars(), *s3_jars(), *kafka_broker_jars()]
    hidden = {_named_by_file(jar)[0] for jar in spark_kafka_jars()}
    shipped = sorted(spark_jars_dir().glob("*.jar"))
    return [*fetched, *(jar for jar in shipped if _named_by_file(jar)[0] not in hidden)]


def report(jars: Iterable[Path], *, database: str = DATABASE) -> int:
    """Print what is known against these jars. The exit status: 1 if something is, or a jar is unknown."""
    listed, unknown, named = groups(), [], set()
    for jar in jars:
        found = coordinates(jar, listed)
        named |= found
        if not found:
            unknown.append(jar.name)
    against = findings(sorted(named, key=str), database=database)
    for one, identifiers in against.items():
        print(f"{one}  {' '.join(identifiers)}")
    for name in sorted(unknown):
        print(f"{name}  its coordinates are unknown: {GROUPS.name} lacks its group")
    print(f"{len(named)} artifacts asked about, {len(against)} with findings, {len(unknown)} jars unknown")
    return 1 if against or unknown else 0


if __name__ == "__main__":
    try:
        sys.exit(report(loaded_jars()))
    except EvenflowError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
