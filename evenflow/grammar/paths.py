"""Names of fields within fields: `user.id` is the field `id` of the object in the field `user`
of a JSON record.

A field whose own name has a dot is written in quotes: `"user.id"` is one field, and `"a.b".c` is the field
`c` in the field `a.b`. Within quotes, two quotes stand for one. Records of csv and text have no fields within
fields, so a name there is just a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

MOST_LEVELS = 8
"""Most nested objects, counted from the record itself."""


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")


def toml_name(name: str) -> str:
    """The name of a setting or column as TOML wants it before `=`: in quotes, unless it is plain."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def segments(name: str) -> tuple[str, ...]:
    """The fields on the way to this field, outermost first. ValueError for a name that is no path."""
    if "." not in name and not name.startswith('"'):
        return (name,)
    fields: list[str] = []
    rest = name
    while True:
        segment, rest = _quoted(name, rest) if rest.startswith('"') else _plain(rest)
        if not segment:
            raise ValueError(f"{name!r} names a field without a name: between two dots stands a name")
        fields.append(segment)
        if not rest:
            break
        rest = rest[1:]
    if len(fields) > MOST_LEVELS:
        raise ValueError(f"{name!r} lies {len(fields)} fields deep, more than {MOST_LEVELS}")
    return tuple(fields)


def written(fields: Iterable[str]) -> str:
    """The name of the field that is reached through these fields. The inverse of `segments`."""
    return ".".join(map(_as_segment, fields))


def check(names: Iterable[str]) -> None:
    """ValueError for a name that is no path, or that is not in the form that `written` gives it."""
    for name in names:
        right = written(segments(name))
        if right != name:
            raise ValueError(f"write column {name!r} as {right!r}")


def check_together(names: Sequence[str]) -> None:
    """ValueError if one of these fields of a JSON record lies in another one, which would then be no
    value.
    """
    known = {segments(name): name for name in names}
    for path, name in known.items():
        for length in range(1, len(path)):
            outer = known.get(path[:length])
            if outer is not None:
                raise ValueError(
                    f"column {outer!r} cannot be a value and also the object that holds {name!r}"
                )


def _plain(rest: str) -> tuple[str, str]:
    segment, dot, after = rest.partition(".")
    return segment, dot + after


def _quoted(name: str, rest: str) -> tuple[str, str]:
    """(the quoted segment at the start of `rest`, what follows it). name: the whole name, for messages."""
    at = 1
    segment = ""
    while True:
        end = rest.find('"', at)
        if end < 0:
            raise ValueError(f"{name!r} has a quote that does not end")
        segment += rest[at:end]
        if rest[end + 1 : end + 2] != '"':
            break
        segment += '"'
        at = end + 2
    rest = rest[end + 1 :]
    if rest and not rest.startswith("."):
        raise ValueError(f"{name!r}: behind the quotes stands a dot or nothing")
    return segment, rest


def _as_segment(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if "." in field or field.startswith('"') else field
