"""Which worker gets which tuple, without Kafka.

    pip install .  # in a clone of evenflow
    python examples/route_list.py

Half of the orders are of one customer. Hashing gives all of them to one worker; `evenflow` splits that one
key over several workers and leaves nearly every other key on one.
"""

import numpy as np

from evenflow.partitioners import create

WORKERS = 4
TUPLES = 100_000


def main() -> None:
    customers = ["big" if number % 2 else f"c{number % 1_000}" for number in range(TUPLES)]
    times = np.datetime64("2026-01-01", "ms") + np.arange(TUPLES)  # one order a millisecond

    for name in ("hashing", "evenflow"):
        partitioner = create(name, workers=WORKERS)
        # In blocks, as a stream comes. How it is cut changes nothing.
        blocks = [
            partitioner.assign_keys(customers[first : first + 10_000], times[first : first + 10_000])
            for first in range(0, TUPLES, 10_000)
        ]
        workers = np.concatenate(blocks)
        copies = len(set(zip(customers, workers.tolist(), strict=True))) / len(set(customers))
        loads = np.bincount(workers, minlength=WORKERS)
        print(f"{name:9} tuples of each worker: {loads.tolist()}; a key is on {copies:.3f} workers")


if __name__ == "__main__":
    main()
