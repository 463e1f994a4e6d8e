"""Writes the dashboards: `python -m monitoring.grafana`.

With `--check` it only names the files that would change.
"""

from __future__ import annotations

import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from monitoring.grafana.boards import BOARDS

FOLDER = Path(__file__).parent / "dashboards"


def dashboard_texts() -> dict[Path, str]:
    """The text that each dashboard's file should hold."""
    encoder = JSONEncoder(sort_keys=True, indent=2)
    return {FOLDER / f"{name}.json": encoder.encode(build().build()) + "\n" for name, build in BOARDS.items()}


def main(*, check: bool) -> int:
    """Write or check the files. Returns the exit status: 1 if `check` and some file differs."""
    texts = dashboard_texts()
    texts_on_disk = {file: file.read_text() for file in FOLDER.glob("*.json")}
    other = sorted(
        file for file in texts.keys() | texts_on_disk.keys() if texts.get(file) != texts_on_disk.get(file)
    )
    for file in other:
        print(f"{'differs' if check else 'written'}: {file.relative_to(FOLDER.parents[2])}")
        if not check and file in texts:
            file.write_text(texts[file])
        elif not check:
            file.unlink()  # a dashboard that the code makes no longer
    if check and other:
        print("run `python -m monitoring.grafana` and commit what it writes")
    return int(check and bool(other))


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
