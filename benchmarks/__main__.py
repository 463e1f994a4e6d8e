"""Run benchmarks and print one JSON object a line, with the facts of the machine beside the figures."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib import import_module

SCENARIOS = ("topics_roundtrip",)
"""Modules of `benchmarks/`, one scenario each."""


def main(arguments: list[str] | None = None) -> int:
    """Run the scenarios named (default: all)."""
    modules = [import_module(f"benchmarks.{name}") for name in SCENARIOS]
    known = {module.ID: module for module in modules}
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help=f"default: all of {', '.join(known)}")
    parser.add_argument("--smoke", action="store_true", help="small sizes: shows that they run, not how fast")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.ids) - set(known))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    for name in options.ids or known:
        print(f"{name}: {known[name].WHAT}", file=sys.stderr)
        started = time.perf_counter()
        figures = known[name].run(smoke=options.smoke)
        seconds = round(time.perf_counter() - started, 2)
        print(
            json.dumps({"id": name, "smoke": options.smoke, **figures, "wall_seconds": seconds, **machine()})
        )
    return 0


def machine() -> dict[str, object]:
    """What figures depend on."""
    return {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}


if __name__ == "__main__":
    sys.exit(main())
