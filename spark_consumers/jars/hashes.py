"""SHA-256 of the jars that evenflow fetches: `jars.sha256` lists them, in the form of `sha256sum`.

A set of jars that is listed must consist of exactly the files that are listed for it. A set that is not, such
as that of another pyspark, is refused. With `EVENFLOW_UNLISTED_JARS=1` it is taken as the repository serves
it, and a line says so: so the list gets a new set.

`python -m spark_consumers.jars.hashes` checks the sets of the cache. With `--write` it writes the list from
them, or from the sets whose names follow: look at the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evenflow.errors import ServiceError

LIST = Path(__file__).with_name("jars.sha256")


def known_hashes(text: str) -> dict[str, dict[str, str]]:
    """Name of a set -> file -> SHA-256 in hex digits, from lines `<digest>  <set>/<file>`."""
    sets: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        digest, _, path = line.partition("  ")
        folder, _, file = path.partition("/")
        sets.setdefault(folder, {})[file] = digest
    return sets


def listed_hashes(manifest: Path | None = None) -> dict[str, dict[str, str]]:
    """What this file lists, as of `known_hashes`. None: `jars.sha256`, which lists evenflow's own sets."""
    return known_hashes((LIST if manifest is None else manifest).read_text(encoding="utf-8"))


def folder_hashes(folder: Path) -> dict[str, str]:
    """File -> SHA-256 of the jars in a folder."""
    return {jar.name: _digest(jar) for jar in sorted(folder.glob("*.jar"))}


def check(folder: Path, name: str, hashes_by_set: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether the set is listed. name: of the set. hashes_by_set: as `known_hashes` reads it.

    Raises ServiceError, which names the files, if the set is listed and its files are others.
    """
    expected = hashes_by_set.get(name)
    if expected is None:
        return False
    actual = folder_hashes(folder)
    # Files of both, so that one too many is found, not only one that is missing or altered.
    wrong = sorted(file for file in expected.keys() | actual.keys() if expected.get(file) != actual.get(file))
    if wrong:
        raise ServiceError(
            f"jars of {name} are not those that evenflow knows by their SHA-256: {', '.join(wrong)}",
            hint=(
                "the repository, or somebody between it and this machine, serves other files: do not use"
                f" them. {LIST.name} has the SHA-256 of each"
            ),
        )
    return True


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _main(write: bool, names: Sequence[str] = ()) -> int:
    from spark_consumers.jars.fetch import cache_dir

    folders = sorted(
        folder for folder in (cache_dir() / "jars").iterdir() if (folder / "resolved.json").exists()
    )
    hashes_by_set = listed_hashes()
    unknown = sorted(set(names) - {folder.name for folder in folders})
    if unknown:
        print(f"no such set in the cache: {', '.join(unknown)}", file=sys.stderr)
        return 1
    if write:
        hashes_by_set |= {
            folder.name: folder_hashes(folder) for folder in folders if not names or folder.name in names
        }
        lines = [
            f"{digest}  {name}/{file}"
            for name in sorted(hashes_by_set)
            for file, digest in sorted(hashes_by_set[name].items())
        ]
        LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        for folder in folders:
            listed = check(folder, folder.name, hashes_by_set)
            print(f"{folder.name}: {'as listed' if listed else 'not listed, so nobody vouches for it'}")
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:2] == ["--write"], sys.argv[2:]))
