"""The tournament gives what a scan of all loads gives, the lowest number on a tie."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.sketches.least_loaded import raised, rebuild, tournament, winner
from tests.examples import examples


@examples(60)
@given(st.integers(1, 70), st.lists(st.integers(0, 69), max_size=100), st.randoms(use_true_random=False))
def test_the_winner_is_the_first_least_loaded_worker(n: int, workers: list[int], random: object) -> None:
    loads = np.array([random.randint(0, 3) for _ in range(n)], np.int64)  # type: ignore[attr-defined]
    tree = tournament(n)
    rebuild(tree, loads)
    assert winner(tree) == loads.argmin()
    for worker in workers:
        loads[worker % n] += 1
        raised(tree, loads, worker % n)
        assert winner(tree) == loads.argmin()
        loads[winner(tree)] += 1
        raised(tree, loads, int(winner(tree)))
        assert winner(tree) == loads.argmin()
