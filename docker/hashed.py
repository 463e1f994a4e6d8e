"""Prints the lines of requirements.hashed.lock for what pip would install: `hashed.py REPORT LOCK`.

REPORT: what `pip install --dry-run --report` writes. Ends with 1 if a package has no hash in the lock.
"""

import json
import re
import sys
from pathlib import Path


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def hashed(report: str, lock: str, *, own: str = "evenflow") -> str:
    """The lines of the lock for the packages of the report, without our own. Raises KeyError, which names
    a package.
    """
    entries = re.split(r"\n(?=\S)", lock.strip())
    known = {_name(entry.partition("==")[0]): entry for entry in entries}
    names = {_name(item["metadata"]["name"]) for item in json.loads(report)["install"]} - {own}
    return "\n".join(known[name] for name in sorted(names)) + "\n"


if __name__ == "__main__":
    try:
        sys.stdout.write(hashed(Path(sys.argv[1]).read_text(), Path(sys.argv[2]).read_text()))
    except KeyError as missing:
        sys.exit(f"no hash of {missing} in {sys.argv[2]}: run `make lock`")
