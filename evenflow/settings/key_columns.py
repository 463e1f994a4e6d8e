"""The columns that results have for the parts of a key of several columns: whether their names are free.

These names are checked when a query starts, and not when its settings are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenflow.errors import ConfigError
from evenflow.grammar.aggregate_spec import HIDDEN_COLUMN, RESERVED_RESULT_NAMES
from evenflow.settings.sections.query import Query

_NO_NAME = re.compile("[\0\ud800-\udfff]")


def refuse_taken_names(query: Query) -> None:
    """Raise ConfigError if a part of the key has a name that no column beside the others
    of a result row can have.
    """
    if query.result_keys == ("key",):
        return
    for name in query.result_keys:
        for why in _obstacles(query, name):
            raise ConfigError(
                f"key column {name!r} cannot be a column of the results of {query.name}: {why}",
                hint=(
                    "give the part another name with a derived column (docs/expressions.md),"
                    " and name that column in query.key"
                ),
            )


def _obstacles(query: Query, name: str) -> Iterator[str]:
    """What stands against this name, in words."""
    lower = name.lower()
    if _NO_NAME.search(name):
        yield "its name holds a character that no table takes"
    if lower in RESERVED_RESULT_NAMES or lower in query.emission.columns:
        yield f"result rows have a field {lower} for something else"
    if lower.startswith(HIDDEN_COLUMN):
        yield f"names that begin with {HIDDEN_COLUMN} are those of evenflow's own counts in result rows"
    others = {
        **{other: f"the aggregate {other!r}" for other in query.aggregates},
        **{other: f"the key column {other!r}" for other in query.result_keys if other != name},
    }
    for other, owner in others.items():
        if other.lower() == lower:
            yield f"{owner} has that name, and tables do not tell upper from lower case"
