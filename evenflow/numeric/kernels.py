"""`@kernel`: numba's `njit` with a cache on disk that is right and never in the way.

numba caches compiled code beside the source (`__pycache__`). If that folder is read-only, it uses the user's
cache folder (`$XDG_CACHE_HOME/numba`, usually `~/.cache/numba`). `NUMBA_CACHE_DIR` overrides both. A
container image sets it, and runs every kernel once while it is built. This module adds four things:

* numba's key covers the source file of a kernel, but not the kernels that it calls from other files. So after
  an upgrade old machine code could run. Here the key covers every kernel and constant that a kernel reaches,
  the fields of the structures that it gets, and the compiler's options. (Kernels that were cached under other
  options hid that a cold cache could not compile them.)
* numba numbers the files of a kernel's compiled forms. Two processes that compile two forms at once (cold
  start of several services, tests on all cores) took the same number, and one ran the other's machine code.
  Here a file is named by the digest of its whole key. At worst a form is compiled twice.
* numba refuses a folder of `NUMBA_CACHE_DIR` that it cannot write (that of an image under a read-only root).
  Here the folder is read all the same. A kernel that is not in it is compiled in memory.
* without such a folder and without any writable one (no home), numba refuses to import the module. Here the
  kernel is compiled in memory instead, once per process.

Kernels run without numba's reference counting. (Measured, an atomic increment for every array touched in a
nested call made them 4 to 8 times slower.) So a kernel works on arrays that its caller owns, and neither
allocates nor returns an array. Integer division by zero is undefined in a kernel, as in C.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)

F = TypeVar("F", bound=Callable[..., Any])
_NJIT: Any = numba.njit  # Any: numba is not typed
# _nrt: no reference counting. "numpy": a division by zero raises nothing, so kernels have no test for it.
_OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}


def fingerprint(function: FunctionType, callers: frozenset[str] = frozenset()) -> str:
    """The digest of a kernel's code and of every kernel, intrinsic and global number that it reaches.

    callers: functions that led here. They are in the digest already, so recursion ends.
    """
    callers |= {f"{function.__module__}.{function.__qualname__}"}
    return hashlib.sha256(b"\0".join(_parts(function.__code__, function.__globals__, callers))).hexdigest()


def _parts(code: CodeType, namespace: Mapping[str, Any], callers: frozenset[str]) -> Iterator[bytes]:
    """The parts of the digest. Nested code (of an intrinsic) is opened,
    because its `repr` has a memory address.
    """
    yield code.co_code
    # Byte code names fields by their place in this tuple, so another field may leave it as it is.
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant, namespace, callers)
        else:
            yield repr(constant).encode()
    for name in sorted(set(code.co_names)):
        value = namespace.get(name)
        # `py_func` is the function behind a kernel, `_defn` that behind an intrinsic.
        inner = getattr(value, "py_func", None) or getattr(value, "_defn", None)
        if inner is None and isinstance(value, FunctionType):
            inner = value
        if inner is not None and f"{inner.__module__}.{inner.__qualname__}" not in callers:
            yield fingerprint(inner, callers).encode()
            yield repr(getattr(value, "targetoptions", {}).get("inline")).encode()
        elif isinstance(value, int | float | np.generic | tuple):
            yield f"{name}={value!r}".encode()
        elif isinstance(value, np.ndarray):
            yield f"{name}={value.dtype}{value.shape}".encode() + value.tobytes()
        elif isinstance(value, type) and issubclass(value, tuple):
            yield f"{name}={getattr(value, '_fields', ())}".encode()


def _fields(kinds: Iterable[Any]) -> Iterator[tuple[str, ...]]:
    """The fields of each NamedTuple among these types of numba, and of those within. numba's own key has
    the class only.
    """
    for kind in kinds:
        within: Any = kind  # numba's classes of types declare no attributes
        if isinstance(kind, types.BaseNamedTuple):
            yield tuple(within.fields)
        if isinstance(kind, types.BaseTuple):
            yield from _fields(within.types)


# numba's functions have no types. That is why calls of them are ignored as `no-untyped-call` from here on.
class _NamedByKey(IndexDataCacheFile):
    """The files of one kernel's compiled forms, each named by its key. Every file is replaced in one step."""

    def save(self, key: Any, data: Any) -> None:
        """Store a compiled form. A race may lose an entry of the index,
        but no entry ever points to a wrong file.

        If the folder cannot be written (any more), other processes have to compile again, and nothing else
        happens.
        """
        name = self._data_name(hashlib.sha256(repr(key).encode()).hexdigest()[:16])
        with suppress(OSError):
            # Data first: an entry of the index must not point to a file that is not there yet.
            self._save_data(name, data)  # type: ignore[no-untyped-call]
            self._save_index(self._load_index() | {key: name})  # type: ignore[no-untyped-call]

    def _load_index(self) -> Any:
        """The index, or an empty one if it names types that no longer exist: earlier code wrote it then."""
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):
            return {}

    def _data_name(self, number: str) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{number}.nbc"


class _PrefilledCache(UserProvidedCacheLocator):
    """A folder that was filled when an image was built. It is read, and never written."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """The locator of a kernel's folder. None if there is no such folder."""
        if not os.environ.get("NUMBA_CACHE_DIR"):
            return None
        locator: Any = cls(py_func, py_file)
        return locator if os.path.isdir(locator.get_cache_path()) else None

    def ensure_cache_path(self) -> None:
        """Do nothing. numba would test here whether the folder can be written."""


class _Places(CompileResultCacheImpl):
    """Where compiled forms may be.
    A writable `NUMBA_CACHE_DIR` comes first, then a read-only one, then numba's others.
    """

    _locator_classes = [  # noqa: RUF012 - a list on the class, as in numba's base class
        UserProvidedCacheLocator,
        _PrefilledCache,
        *(
            locator
            for locator in CompileResultCacheImpl._locator_classes
            if locator is not UserProvidedCacheLocator
        ),
    ]


class _DeepCache(FunctionCache):
    """numba's cache of one kernel, with the places, file names and keys that this module adds."""

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
        structures = repr([*_fields(sig)])
        return (*super()._index_key(sig, codegen), fingerprint(self._py_func), structures, options)  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """Compile the function at its first call, and cache it on disk if a folder allows it.
    See the module's rules.
    """
    compiled = _NJIT(function, **_OPTIONS)
    try:
        compiled._cache = _DeepCache(function)
    except RuntimeError:  # no writable folder anywhere
        return cast(F, compiled)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """A small kernel that is compiled into each kernel that calls it."""
    return cast(F, _NJIT(inline="always", **_OPTIONS)(function))
