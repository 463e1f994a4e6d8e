"""`@kernel`: numba's `njit` with a cache on disk that is right and never in the way.

numba caches compiled code beside the source (`__pycache__`), or, when that folder is read-only, below
the user's cache folder (`$XDG_CACHE_HOME/numba`, usually `~/.cache/numba`). `NUMBA_CACHE_DIR` overrides
both. A container image sets it, and runs every kernel once while it is built. Four things are added here:

* numba's key covers the source file of a kernel but not the kernels it calls from other files, so an
  upgrade could run old machine code. Here the key covers every kernel and constant it reaches, and the
  compiler's options (kernels cached under others hid that a cold cache could not compile them).
* numba numbers the files of a kernel's compiled forms. Two processes that compile two forms at once (cold
  start of several services, tests on all cores) took the same number, so that one ran the other's machine
  code. Here a file is named by the digest of its whole key. At worst a form is compiled twice.
* a folder of `NUMBA_CACHE_DIR` that nobody may write (an image's, under a read-only root) is read all the same, which
  numba itself refuses. What is not in it is compiled in memory.
* when there is no such folder and none is writable (no home) numba refuses to import the module. Here the kernel is
  compiled in memory instead, once per process.

Kernels run without numba's reference counting (measured: an atomic increment for every array touched in
a nested call made them 4 to 8 times slower). So a kernel works on arrays that its caller owns: it neither
allocates nor returns an array. Integer division by zero is undefined in it, as in C.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)

F = TypeVar("F", bound=Callable[..., Any])
_NJIT: Any = numba.njit
_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


def fingerprint(function: FunctionType, seen: frozenset[str] = frozenset()) -> str:
    """Digest of a kernel's code and of every kernel, intrinsic and global number that it reaches."""
    seen |= {f"{function.__module__}.{function.__qualname__}"}
    return hashlib.sha256(b"\0".join(_parts(function.__code__, function.__globals__, seen))).hexdigest()


def _parts(code: CodeType, known: Mapping[str, Any], seen: frozenset[str]) -> Iterator[bytes]:
    """What the digest is made of. Code within code (an intrinsic's) has an address for a name, so it is opened."""
    yield code.co_code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant, known, seen)
        else:
            yield repr(constant).encode()
    for name in sorted(set(code.co_names)):
        value = known.get(name)
        inner = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        if inner is None and isinstance(value, FunctionType):
            inner = value
        if inner is not None and f"{inner.__module__}.{inner.__qualname__}" not in seen:
            yield fingerprint(inner, seen).encode()
            yield repr(getattr(value, "targetoptions", {}).get("inline")).encode()
        elif isinstance(value, int | float | np.generic | tuple):
            yield f"{name}={value!r}".encode()
        elif isinstance(value, np.ndarray):
            yield f"{name}={value.dtype}{value.shape}".encode() + value.tobytes()


class _NamedByKey(IndexDataCacheFile):
    """Files of one kernel's compiled forms, each named by its key. Every file is replaced in one step."""

    def save(self, key: Any, data: Any) -> None:
        """Store a compiled form. The index may lose an entry to another process, never point to a wrong one.

        A folder that cannot be written (any more) costs another process the time to compile, and nothing else.
        """
        name = self._data_name(hashlib.sha256(repr(key).encode()).hexdigest()[:16])
        with suppress(OSError):
            self._save_data(name, data)  # type: ignore[no-untyped-call]
            self._save_index(self._load_index() | {key: name})  # type: ignore[no-untyped-call]

    def _load_index(self) -> Any:
        """Nothing is known where an index names types that are no more: an earlier version of the code wrote it."""
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):
            return {}

    def _data_name(self, number: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{number}.nbc"


class _Prefilled(UserProvidedCacheLocator):
    """A folder of an image: it is read, and never written."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """None where there is no such folder."""
        if not os.environ.get("NUMBA_CACHE_DIR"):
            return None
        made: Any = cls(py_func, py_file)
        return made if os.path.isdir(made.get_cache_path()) else None

    def ensure_cache_path(self) -> None:
        """It is what it is."""


class _Places(CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012 - as the base class has it
        UserProvidedCacheLocator,
        _Prefilled,
        *(one for one in CompileResultCacheImpl._locator_classes if one is not UserProvidedCacheLocator),
    ]


class _DeepCache(FunctionCache):
    _impl_class = _Places

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = _NamedByKey(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        options = repr(sorted(_OPTIONS.items()))
        return (*super()._index_key(sig, codegen), fingerprint(self._py_func), options)  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """Compile at first call, cached on disk when a folder allows it. No allocation inside. See the module."""
    compiled = _NJIT(function, **_OPTIONS)
    try:
        compiled._cache = _DeepCache(function)
    except RuntimeError:  # no writable folder anywhere
        return cast(F, compiled)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """A small kernel that is compiled into each kernel that calls it."""
    return cast(F, _NJIT(inline="always", **_OPTIONS)(function))
