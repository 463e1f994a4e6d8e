"""The product's clocks: while a run is under way, `time` means virtual time in the product's packages.

Modules of the product name the module `time`, or have one of its functions as a default argument. Both are
replaced by clocks that ask the run. Outside of a run they ask the real clock.
"""

from __future__ import annotations

import sys
import time
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from tests.faults.processes.world import World

_PACKAGES = ("topics", "partitioner_service", "spark_consumers", "evenflow.reporting", "workbench.verify")
_WORLD: list[World] = []


def set_world(world: World | None) -> None:
    """The run whose clock counts from now on, None for the real clock."""
    _WORLD[:] = [] if world is None else [world]


def _monotonic() -> float:
    return _WORLD[0].monotonic() if _WORLD else time.monotonic()


def _wall() -> float:
    return _WORLD[0].wall() if _WORLD else time.time()


def _sleep(seconds: float) -> None:
    if _WORLD:
        _WORLD[0].sleep(seconds)
    else:
        time.sleep(seconds)


_OURS: dict[Any, Any] = {time.monotonic: _monotonic, time.time: _wall, time.sleep: _sleep}
_MODULE = SimpleNamespace(**{name: getattr(time, name) for name in dir(time) if not name.startswith("__")})
_MODULE.monotonic, _MODULE.time, _MODULE.sleep = _monotonic, _wall, _sleep


def install() -> None:
    """Replace the clocks in all modules of the product that are loaded by now."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in _PACKAGES or ".".join(name.split(".")[:2]) in _PACKAGES:
            _install(module)


def _install(module: ModuleType) -> None:
    for name, value in list(vars(module).items()):
        if value is time:
            setattr(module, name, _MODULE)
        elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
            _defaults(value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for method in vars(value).values():
                if isinstance(method, FunctionType):
                    _defaults(method)


def _defaults(function: FunctionType) -> None:
    if function.__defaults__:
        function.__defaults__ = tuple(_ours(value) for value in function.__defaults__)
    if function.__kwdefaults__:
        function.__kwdefaults__ = {name: _ours(value) for name, value in function.__kwdefaults__.items()}


def _ours(value: Any) -> Any:
    try:
        return _OURS.get(value, value)
    except TypeError:  # it cannot be a key, so it is no clock
        return value
