"""A partitioner in plain Python: one method that names the worker of one tuple. No numpy, no numba.

It costs a call of Python for each tuple: about a microsecond and what the method itself does, where an
algorithm of evenflow takes some ten nanoseconds.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import NEVER, State
from evenflow.partitioners.base import Block, Partitioner
from evenflow.partitioners.explanation import Explanation
from evenflow.partitioners.snapshots import misfit
from evenflow.plugins import in_words


class PlainPartitioner(Partitioner):
    """A partitioner of your own in plain Python. Only `route_one` must be written.

    `self.workers`, `self.seed`, `self.source`, `self.sources` and `self.options` are there from `start` on. A
    partitioner that remembers something also writes `start`, `get_state` and `set_state`.
    """

    variable_state: ClassVar[Mapping[str, tuple[str, ...]]] = {"plain": ("bytes",)}
    _fields: frozenset[str]

    @abstractmethod
    def route_one(self, key: int, time_ms: int) -> int:
        """The worker of the next tuple, 0 to workers - 1.

        key: its hash, 0 to 2^64 - 1. time_ms: event time in ms since 1970. It never falls: a tuple that is
        late comes with the greatest time so far. The answer may depend on these, on the seed and on earlier
        tuples alone: not on a clock, on unseeded random numbers or on Python's `hash`.
        """

    def start(self) -> None:
        """Begin with an empty state for `self.workers`.
        It is called again whenever the number of workers changes.
        """

    def get_state(self) -> Any:
        """All that `route_one` remembers, as JSON can hold it: numbers, texts, lists,
        and dicts whose keys are texts.
        """
        return None

    def set_state(self, state: Any) -> None:
        """Continue from what `get_state` gave. `start` has been called before. Tuples come back as lists."""
        raise NotImplementedError

    def _start(self) -> None:
        if not hasattr(self, "_fields"):
            self._clock = np.array([NEVER], np.int64)
            self._fields = frozenset({*vars(self), "_fields"})
        self.start()
        if (type(self).get_state is PlainPartitioner.get_state) != (
            type(self).set_state is PlainPartitioner.set_state
        ):
            raise ConfigError(
                f"{self.name} has one of get_state and set_state", hint="write both, or neither"
            )
        self._refuse_unsaved()

    def _rescale(self) -> None:
        self.start()

    def _assign(self, block: Block) -> None:
        clock = np.maximum.accumulate(np.maximum(block.times, self._clock[0]))
        for row, (key, time) in enumerate(zip(block.keys.tolist(), clock.tolist(), strict=True)):
            block.out[row] = self._checked_worker(key, time)
        self._clock[0] = clock[-1]

    def _checked_worker(self, key: int, time: int) -> int:
        try:
            worker = self.route_one(key, time)
        except Exception as error:
            raise ConfigError(
                f"route_one of {self.name} failed with key {key} at time {time}: {in_words(error)}"
            ) from error
        whole = isinstance(worker, int | np.integer) and not isinstance(worker, bool)
        if not whole or not 0 <= worker < self.workers:
            raise ConfigError(
                f"route_one of {self.name} gave {worker!r} for key {key}:"
                f" no worker from 0 to {self.workers - 1}",
                hint="take a hash modulo self.workers",
            )
        return int(worker)

    @property
    def _remembers(self) -> bool:
        return type(self).get_state is not PlainPartitioner.get_state

    def _refuse_unsaved(self) -> None:
        """Raise ConfigError if the object has fields of its own and no `get_state` that saves them."""
        own = [] if self._remembers else sorted(vars(self).keys() - self._fields)
        if own:
            raise ConfigError(
                f"{self.name} remembers {', '.join(own)}, and has no get_state and set_state",
                hint="write both. If nothing of this changes from tuple to tuple, get_state may return {}",
            )

    def _state(self) -> State:
        self._refuse_unsaved()
        if not self._remembers:
            return {"clock": self._clock}
        state = self.get_state()
        _check_json(self.name, state)
        return {"clock": self._clock, "plain": np.frombuffer(json.dumps(state).encode(), np.uint8)}

    def _load_state(self, state: State) -> None:
        self._clock = state["clock"]
        if self._remembers:
            try:
                self.set_state(json.loads(state["plain"].tobytes()))
            except Exception as error:
                raise misfit(self.name, f"set_state refuses it: {in_words(error)}") from error

    def _explain(self, key: np.uint64, now: int | None) -> Explanation:
        latest = int(self._clock[0])
        time = max(latest, 0 if now is None and latest == NEVER else latest if now is None else now)
        # On a copy, because to route is to learn.
        worker = deepcopy(self)._checked_worker(int(key), time)
        return Explanation(
            rule=f"route_one of {type(self).__name__} names worker {worker}", workers=(worker,)
        )

    def _choices(self) -> int:
        return self.workers if self.key_policy == "splitting" else 1

    def _state_bound(self, keys: int) -> int:
        raise ConfigError(
            f"{self.name} does not say how much its state can grow", hint="write _state_bound(self, keys)"
        )


def _check_json(name: str, value: object) -> None:
    """Raise ConfigError for a value that JSON would change or cannot hold. A tuple may become a list."""
    if isinstance(value, list | tuple):
        for item in value:
            _check_json(name, item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ConfigError(
                    f"get_state of {name} has a dict with the key {key!r}, and JSON has texts alone for keys",
                    hint="return list(its.items()), and make the dict again in set_state",
                )
            _check_json(name, item)
    elif not (value is None or isinstance(value, bool | int | str) or _is_finite(value)):
        raise ConfigError(
            f"get_state of {name} has {value!r}, which JSON cannot hold",
            hint="return numbers, texts, lists, and dicts whose keys are texts",
        )


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
