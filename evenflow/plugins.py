"""Things of one's own, without a fork: what an installed package offers
as an entry point, or `module:Attribute`.

This is the only place that reads entry points or imports a user's module. A registry asks it for a name that
is not one of its own.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import FunctionType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from evenflow.errors import ConfigError, EvenflowError
from evenflow.text.spelling import did_you_mean

log = logging.getLogger(__name__)
Base = TypeVar("Base")
Plugin = TypeVar("Plugin")
CALLED_IN = "CALLED_IN_FOLDER"
"""Variable of the environment that names the folder where the user called the command, for services that the
command starts in another folder. At the end of Python's path, so that its files hide no other module."""


@dataclass(frozen=True, kw_only=True)
class Entry(Generic[Plugin]):
    """A line of a list: a name that may be written, and what it stands for."""

    name: str
    """The name that a setting or an option takes."""
    summary: str
    """What the thing does, in one line. If it cannot be loaded: what is wrong."""
    plugin: Plugin | None
    """The thing itself, None if it cannot be loaded."""
    package: str | None = None
    """The package that offers the thing, None for evenflow."""

    @property
    def marked(self) -> str:
        """The summary, with the package in front if the thing is not evenflow's."""
        return marked(self.summary, self.package)

    def as_json(self) -> dict[str, Any]:
        """What is said of the thing, as plain JSON."""
        return {"name": self.name, "summary": self.summary, "package": self.package}


@dataclass(frozen=True)
class Plugins:
    """The things of one kind that stand outside evenflow."""

    group: str
    """Group of their entry points, as a package's pyproject.toml names it."""
    noun: str
    """What messages call one of them."""

    def names(self, *, own: Collection[str] = ()) -> tuple[str, ...]:
        """The names that installed packages offer, sorted, but for evenflow's `own`. A package that takes
        such a name is warned of once."""
        offered = {point.name: point for point in _points(self.group)}
        for name in offered.keys() & set(own):
            _warn_of(self.noun, name, _package(offered[name]))
        return tuple(sorted(offered.keys() - set(own)))

    def entries(
        self, own: Mapping[str, Plugin], load: Callable[[str], Plugin], summary: Callable[[Plugin], str]
    ) -> list[Entry[Plugin]]:
        """A line for each of evenflow's `own` things by name, and behind them for each that packages offer.

        load: the thing of a package's name, or ConfigError. summary: what a thing is.
        """
        ours = [Entry(name=name, summary=summary(plugin), plugin=plugin) for name, plugin in own.items()]
        return [*ours, *(self._entry(name, load, summary) for name in self.names(own=own))]

    def _entry(
        self, name: str, load: Callable[[str], Plugin], summary: Callable[[Plugin], str]
    ) -> Entry[Plugin]:
        package = self.package(name)
        try:
            plugin = load(name)
        except ConfigError as error:
            return Entry(name=name, summary=what_is_wrong(error), plugin=None, package=package)
        return Entry(name=name, summary=summary(plugin), plugin=plugin, package=package)

    def listed(self, own: Collection[str]) -> str:
        """All names for a message: evenflow's `own`, and behind them those of packages,
        each with its package.
        """
        offered = (f"{name} ({self.package(name)})" for name in self.names(own=own))
        return ", ".join((*own, *offered))

    def knows(self, name: str) -> bool:
        """Whether `load` would try to load this name: an entry point has it,
        or it is written as `module:Attribute`.
        """
        return _written_as_module(name) or any(point.name == name for point in _points(self.group))

    def package(self, name: str) -> str | None:
        """The package that offers this name.
        None for `module:Attribute`, and for a name that no package offers.
        """
        return next((_package(point) for point in _points(self.group) if point.name == name), None)

    def is_imported(self, name: str) -> bool:
        """Whether `load` would import nothing that is not imported already,
        or installed as a package for evenflow.
        """
        return self.package(name) is not None or name.partition(":")[0] in sys.modules

    def load(self, name: str) -> object:
        """The object of an entry point of this name, or the attribute of a module
        that `module:Attribute` names.

        A module is looked for as Python does, and then in the folder where the command was called. Raises
        ConfigError if the name is neither, if two packages offer it, if the module cannot be imported, or if
        it has no such attribute.
        """
        points = [point for point in _points(self.group) if point.name == name]
        if len(points) > 1:
            packages = " and ".join(sorted(map(_package, points)))
            raise ConfigError(
                f"{packages} both offer a {self.noun} {name!r}",
                hint=f"write the one that is meant as {points[0].value!r} or {points[1].value!r}",
            )
        if points:
            return self._attribute(name, points[0].module, points[0].attr)
        if not _written_as_module(name):
            raise ConfigError(
                f"no package offers a {self.noun} {name!r}",
                hint=f"a {self.noun} of your own is written as module:Class",
            )
        module, _, attribute = name.partition(":")
        return self._attribute(name, module, attribute)

    def _attribute(self, name: str, module: str, path: str) -> object:
        target: object = self._module(name, module)
        for attribute in path.split("."):
            try:
                target = getattr(target, attribute)
            except AttributeError:
                raise ConfigError(
                    f"the {self.noun} {name!r} is not there: module {module} has no {path}",
                    hint=(
                        f"the module is {getattr(sys.modules.get(module), '__file__', None) or 'not a file'}"
                    ),
                ) from None
        return target

    def _module(self, name: str, module: str) -> object:
        try:
            try:
                return importlib.import_module(module)
            except ModuleNotFoundError as error:
                folder = os.environ.get(CALLED_IN) or os.getcwd()
                # A command's own folder stands in sys.path, and not the folder where it was called.
                known = folder in sys.path or ("" in sys.path and folder == os.getcwd())
                if not _is_outer(error.name, module) or known:
                    raise
                sys.path.append(folder)
                importlib.invalidate_caches()
                return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if _is_outer(error.name, module):
                raise ConfigError(
                    f"the {self.noun} {name!r} is not there: Python knows no module {error.name}",
                    hint=(
                        "install its package, or call the command in the folder of"
                        f" {module.split('.')[0]}.py, or name that folder in PYTHONPATH"
                    ),
                ) from None
            raise self._broken(name, module, error) from error
        except Exception as error:
            raise self._broken(name, module, error) from error

    def _broken(self, name: str, module: str, error: Exception) -> ConfigError:
        return ConfigError(
            f"the {self.noun} {name!r} cannot be imported: {in_words(error)}",
            hint=f"does `python -c 'import {module}'` work?",
        )


PARTITIONERS = Plugins("evenflow.partitioners", "partitioner")
AGGREGATES = Plugins("evenflow.aggregates", "aggregate")
POLICIES = Plugins("evenflow.policies", "policy")
SOURCES = Plugins("evenflow.sources", "source")
SINKS = Plugins("evenflow.sinks", "sink")
QUERIES = Plugins("evenflow.queries", "query")
_SINK_BASE = "spark_consumers.sinks.base.ResultSink"


def marked(words: str, package: str | None) -> str:
    """What a list says of a thing: the words, with the package in front that offers it.
    None: no package does.
    """
    return words if package is None else f"({package}) {words}"


def first_paragraph(text: str | None) -> str:
    """The first paragraph of a docstring on one line. Empty if there is no text."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def summary_of(plugin: object) -> str:
    """What a class or function says of itself in the first paragraph of its docstring."""
    return first_paragraph(plugin.__doc__) or "It does not say what it does."


def what_is_wrong(error: ConfigError) -> str:
    """What a list says of a package's thing that cannot be loaded."""
    return f"It cannot be used: {error.message}."


def checked_class(
    name: str, candidate: object, base: type[Base], options: type[BaseModel], *, noun: str
) -> type[Base]:
    """The candidate, if it is a class derived from `base` that can make objects.
    ConfigError says what it lacks.

    name: as the user wrote it. options: what its `options_type` is derived from. noun: what messages call it.
    """
    hint = f"derive a class from {base.__name__} (docs/your-own.md)"
    if not isinstance(candidate, type):
        raise ConfigError(f"{name} is no {noun}: it is no class but {_kind(candidate)}", hint=hint)
    if not issubclass(candidate, base):
        raise ConfigError(f"{name} is no {noun}: its class is not derived from {base.__name__}", hint=hint)
    if inspect.isabstract(candidate):
        missing = ", ".join(sorted(getattr(candidate, "__abstractmethods__", ())))
        raise ConfigError(f"{name} is no whole {noun}: it lacks {missing}", hint=f"write {missing}")
    kind: object = getattr(candidate, "options_type", None)
    if not (isinstance(kind, type) and issubclass(kind, options)):
        raise ConfigError(
            f"options_type of {name} is {kind!r}, no class derived from {options.__module__}:Options"
        )
    required = [option for option, field in kind.model_fields.items() if field.is_required()]
    if required:
        raise ConfigError(
            f"the option {required[0]!r} of {name} has no default", hint="each option needs a default"
        )
    return candidate


def own_sink(name: str, *, built_in: Collection[str]) -> object:
    """The sink of one's own of this name: an object of a class that derives from `ResultSink`.

    built_in: the names of evenflow's own sinks, for messages. Raises ConfigError for a name that no sink has,
    and for what is no sink. The base is told by its name, because the library does not import Spark's jobs.
    """
    if not SINKS.knows(name):
        raise ConfigError(
            f"there is no sink {name!r}{did_you_mean(name, [*built_in, *SINKS.names(own=built_in)])}",
            hint=f"results.sink is one of {SINKS.listed(built_in)}, or module:SINK for a sink of your own",
        )
    sink = SINKS.load(name)
    if any(f"{base.__module__}.{base.__qualname__}" == _SINK_BASE for base in type(sink).__mro__):
        return sink
    description = (
        f"the class {sink.__qualname__}" if isinstance(sink, type) else f"of type {type(sink).__qualname__}"
    )
    raise ConfigError(
        f"the sink {name!r} is {description}, and no object of a class that derives from"
        " spark_consumers.sinks.ResultSink",
        hint=(
            "write `class MySink(RowsSink): ...` and `SINK = MySink()`, and name SINK"
            " (docs/your-own-sinks.md)"
        ),
    )


@contextmanager
def mistakes_told(message: str) -> Iterator[None]:
    """Turn an error of a user's code, raised within, into a ConfigError that begins with these words and
    has its line.
    """
    try:
        yield
    except EvenflowError:
        raise
    except Exception as error:
        raise ConfigError(f"{message}: {in_words(error)}") from error


def in_words(error: Exception) -> str:
    """An error of a user's code with the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _kind(value: object) -> str:
    words = {"module": "a module", "function": "a function", "NoneType": "None"}
    word = type(value).__name__
    return words.get(word, f"an object of class {word}")


def name_of(target: type | FunctionType) -> str:
    """`module:Name`, by which another process finds this class or function. Raises ConfigError for one
    inside a function.
    """
    if "<locals>" in target.__qualname__:
        kind = "class" if isinstance(target, type) else "function"
        raise ConfigError(
            f"{target.__qualname__} is a {kind} inside a function, so no other process can find it",
            hint="define it at the top of a module",
        )
    return f"{target.__module__}:{target.__qualname__}"


def _points(group: str) -> list[EntryPoint]:
    return list(_all_points(group, tuple(sys.path)))


@cache
def _all_points(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of a group. They depend on `sys.path`."""
    # The same folder may stand in the path twice, and a package then offers everything twice.
    return tuple(
        {(point.name, point.value, _package(point)): point for point in entry_points(group=group)}.values()
    )


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module


@cache
def _warn_of(noun: str, name: str, package: str) -> None:
    log.warning(
        "the package %s offers a %s %r, but evenflow has one of that name, and takes its own",
        package,
        noun,
        name,
    )


def _written_as_module(name: str) -> bool:
    """Whether this is written as `module:Attribute`."""
    module, colon, attribute = name.partition(":")
    words = [*module.split("."), *attribute.split(".")]
    return bool(colon) and all(word.isidentifier() for word in words)


def _is_outer(missing: str | None, module: str) -> bool:
    """Whether the missing module is this one or one that it stands in, and not one that it imports."""
    return missing is not None and (module == missing or module.startswith(f"{missing}."))
