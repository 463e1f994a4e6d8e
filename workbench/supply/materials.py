"""Adds the jars to a bill of materials: `python -m workbench.supply.materials FILE`,
a CycloneDX file of the Python packages.

The jars are those of `spark_consumers/jars/jars.sha256`. A set names its Maven coordinates, and a jar of it
its artifact and version. Only the file itself would name its group, so a jar is a file with its SHA-256.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_consumers.jars.hashes import listed_hashes


def with_jars(bill: Mapping[str, Any], sets: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The bill with a component for each jar. sets: name of a set -> file -> SHA-256.
    A jar of two is there once.
    """
    jars = {(file, digest) for files in sets.values() for file, digest in files.items()}
    components = [jar_component(file, digest) for file, digest in sorted(jars)]
    return {**bill, "components": [*bill.get("components", []), *components]}


def jar_component(file: str, digest: str) -> dict[str, Any]:
    """The component of a jar. digest: its SHA-256."""
    return {
        "type": "file",
        "bom-ref": f"jar:{digest}",
        "name": file,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


if __name__ == "__main__":
    packages = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    json.dump(with_jars(packages, listed_hashes()), sys.stdout, indent=1)
