"""`python -m benchmarks` does the same as `evenflow bench --json` where the command `evenflow` is not
installed.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.runner import GROUPS, modules_by_id, run_all


def main(arguments: list[str] | None = None) -> int:
    """Run the scenarios that the arguments name (default: all)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help=f"of {', '.join([*modules_by_id(), *GROUPS])}")
    parser.add_argument("--smoke", action="store_true", help="small sizes: shows that they run, not how fast")
    options = parser.parse_args(arguments)
    run_all(options.ids, smoke=options.smoke, as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
