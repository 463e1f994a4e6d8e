"""What the simulator has run so far: `runs.csv` has a row for each time, and docs/correctness.md shows the
sum.

`mends.csv` has the seeds that show that a mend is missing, with the commit at which that was seen. They
change with the product and with the focuses, so the page says of which commit they are.
"""

from __future__ import annotations

import csv
import re
import subprocess
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS = Path(__file__).with_name("runs.csv")
SHOWN = Path(__file__).with_name("mends.csv")
PAGE = ROOT / "docs" / "correctness.md"
GOAL = 1_000_000
_SUM = re.compile(r"^The simulator has made .*?(?=^`make simulate-on)", re.DOTALL | re.MULTILINE)
_MENDS = re.compile(r"^\| mend taken out .*?\n\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """Runs of one commit. seeds: first and last, as in `0-999`. focus: "" if each seed drew its own."""

    date: str
    commit: str
    seeds: str
    focus: str
    runs: int
    failures: int
    note: str = ""

    @property
    def last(self) -> int:
        """The last of its seeds."""
        return int(self.seeds.split("-")[1])


@dataclass(frozen=True)
class Shown:
    """What came of taking a mend out. seeds: those of the first `of` seeds of the focus that showed it."""

    mend: str
    focus: str
    commit: str
    seeds: tuple[int, ...]
    of: int


def rows() -> list[Row]:
    """The rows of runs.csv."""
    with RUNS.open(newline="") as file:
        return [_row(result) for result in csv.DictReader(file)]


def next_seed() -> int:
    """The seed behind all that were run without a focus."""
    return max(row.last for row in rows() if not row.focus) + 1


def committed() -> str:
    """The commit that runs. Raises SystemExit if a file is not as it is committed."""
    own = {path.relative_to(ROOT).as_posix() for path in (RUNS, SHOWN, PAGE)}
    changed = {
        line[3:] for line in str(_git("status", "--porcelain", "--untracked-files=no")).splitlines()
    } - own
    if changed:
        raise SystemExit(f"commit {', '.join(sorted(changed))} first: a row names the commit that was run")
    for commit in sorted({row.commit for row in rows()}):
        if _git("merge-base", "--is-ancestor", commit.removeprefix("before "), "HEAD") is None:
            print(f"{commit} of runs.csv is not in this history any more: say before which commit it was")
    return str(_git("rev-parse", "--short=7", "HEAD")).strip()


def note_runs(commit: str, first: int, runs: int, failures: int, focus: str | None) -> None:
    """Add a row of today, and write the sum into the page."""
    today = datetime.now(UTC).date().isoformat()
    row = Row(today, commit, f"{first}-{first + runs - 1}", focus or "", runs, failures)
    with RUNS.open("a", newline="") as file:
        csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n").writerow(asdict(row))
    write_page()


def shown() -> dict[str, Shown]:
    """The rows of mends.csv by mend."""
    with SHOWN.open(newline="") as file:
        return {
            result["mend"]: Shown(
                result["mend"],
                result["focus"],
                result["commit"],
                tuple(int(seed) for seed in result["seeds"].split()),
                int(result["of"]),
            )
            for result in csv.DictReader(file)
        }


def note_shown(new: Shown, order: list[str]) -> None:
    """Put this in the place of what was known of its mend. order: all mends; what is known of others is
    dropped.
    """
    known = shown() | {new.mend: new}
    with SHOWN.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Shown)])
        for row in (known[mend] for mend in order if mend in known):
            writer.writerow([row.mend, row.focus, row.commit, " ".join(map(str, row.seeds)), row.of])
    write_page()


def page() -> str:
    """The page, with what runs.csv and mends.csv say."""
    text = PAGE.read_text()
    for pattern, made in ((_SUM, _sum()), (_MENDS, _mends())):
        result = pattern.search(text)
        if result is None:
            raise ValueError(f"{PAGE.name} has no passage like {pattern.pattern}")
        text = text[: result.start()] + made + text[result.end() :]
    return text


def write_page() -> None:
    """Write the page anew."""
    PAGE.write_text(page())


def _sum() -> str:
    known = rows()
    total, latest = sum(row.runs for row in known), known[-1]
    lines = [
        (
            f"The simulator has made {total:,} runs so far, of {GOAL:,} that are the goal, each with the"
            " newest code of its"
        ),
        f"time. The last ones were those of commit {latest.commit} on {latest.date}.",
        "[runs.csv](../tests/faults/runs.csv) has all of them. These found something:",
        "",
        "| date | commit | seeds | failed | what it was |",
        "|---|---|---|---|---|",
    ]
    for row in known:
        if row.failures:
            seeds = " to ".join(f"{int(seed):,}" for seed in row.seeds.split("-"))
            focus = f" of the focus `{row.focus}`" if row.focus else ""
            failed = f"{row.failures} of {row.runs:,}"
            note = row.note or "not explained yet"
            lines.append(f"| {row.date} | {row.commit} | {seeds}{focus} | {failed} | {note} |")
    return "\n".join([*lines, "", ""])


def _mends() -> str:
    from tests.faults.mutations import MENDS

    known = shown()
    lines = [
        "| mend taken out | focus | first seeds that show it | how many | commit |",
        "|---|---|---|---|---|",
    ]
    for name, mend in MENDS.items():
        result = known.get(name)
        if result is None or not result.seeds:
            lines.append(f"| {name} | {mend.focus} | - | - | - |")
        else:
            first = ", ".join(map(str, result.seeds[:3]))
            lines.append(
                f"| {name} | {mend.focus} | {first} | {len(result.seeds)} of {result.of} | {result.commit} |"
            )
    return "\n".join([*lines, "", ""])


def _row(found: dict[str, str]) -> Row:
    runs, failures = int(found["runs"]), int(found["failures"])
    return Row(found["date"], found["commit"], found["seeds"], found["focus"], runs, failures, found["note"])


def _git(*words: str) -> str | None:
    """What git says, None if it refuses."""
    answer = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return None if answer.returncode else answer.stdout
