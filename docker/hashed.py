"""Prints lines of requirements.hashed.lock: `hashed.py REPORT LOCK` those of what pip would install,
`hashed.py --only NAME,NAME LOCK` those of the packages of these names.

REPORT: what `pip install --dry-run --report` writes. Ends with 1 if a package has no hash in the lock.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def lines_of(packages: Iterable[str], lock: str) -> str:
    """The lines of the lock for the packages of these names. Raises KeyError, which names a package."""
    entries = re.split(r"\n(?=\S)", lock.strip())
    known = {_name(entry.partition("==")[0]): entry for entry in entries}
    return "\n".join(known[name] for name in sorted(set(map(_name, packages)))) + "\n"


def hashed(report: str, lock: str, *, own: str = "evenflow") -> str:
    """The lines of the lock for the packages of the report, without our own. Raises KeyError, which names
    a package.
    """
    names = {_name(item["metadata"]["name"]) for item in json.loads(report)["install"]}
    return lines_of(names - {own}, lock)


if __name__ == "__main__":
    *question, place = sys.argv[1:]
    locked = Path(place).read_text()
    try:
        if question[0] == "--only":
            sys.stdout.write(lines_of(question[1].split(","), locked))
        else:
            sys.stdout.write(hashed(Path(question[0]).read_text(), locked))
    except KeyError as missing:
        sys.exit(f"no hash of {missing} in {place}: run `make lock`")
