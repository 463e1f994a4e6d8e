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
    parser.add_argument("--seed", type=int, help="of the stream, for scenarios that can take another one")
    options = parser.parse_args(arguments)
    run_all(options.ids, smoke=options.smoke, as_json=True, seed=options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
