"""The bill of materials of the image in which it runs, as CycloneDX.

`python -m workbench.supply.image_materials` prints it.

`make sbom` tells of what is locked. This tells of what is there: packages of Debian, distributions of Python
and jars, also those of a base image and of packages of one's own.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

import evenflow
from spark_consumers.jars.fetch import cache_dir
from spark_consumers.jars.hashes import folder_hashes
from workbench.supply.materials import jar_component

STATUS = Path("/var/lib/dpkg/status")
"""What Debian's dpkg has installed."""


def bill(debian: str, python: Iterable[tuple[str, str]], jars: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A bill of these. debian: dpkg's status file. python: (name, version) of each distribution. jars: (file,
    SHA-256).
    """
    components = [
        *_debian(debian),
        *(_library(f"pkg:pypi/{_python_name(name)}@{version}", name, version) for name, version in python),
        *(jar_component(file, digest) for file, digest in jars),
    ]
    # The same jar may lie in two folders, and a distribution may be found by two paths.
    unique = {component["bom-ref"]: component for component in components}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "evenflow", "version": evenflow.__version__}},
        "components": [unique[reference] for reference in sorted(unique)],
    }


def _debian(status: str) -> Iterator[dict[str, Any]]:
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status") == "install ok installed":
            name, version = fields["Package"], fields["Version"]
            reference = f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={fields['Architecture']}"
            yield _library(reference, name, version)


def _library(reference: str, name: str, version: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": reference, "purl": reference, "name": name, "version": version}


def _python_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _jars() -> Iterator[tuple[str, str]]:
    roots = [Path(entry) for entry in sys.path if Path(entry).is_dir()] + [cache_dir() / "jars"]
    folders = {jar.parent for root in roots for jar in root.rglob("*.jar")}
    for folder in sorted(folders):
        yield from folder_hashes(folder).items()


if __name__ == "__main__":
    found = ((one.metadata["Name"], one.version) for one in distributions())
    installed = STATUS.read_text(encoding="utf-8") if STATUS.exists() else ""
    json.dump(bill(installed, found, _jars()), sys.stdout, indent=1)
