"""The fingerprint of what is fixed for the life of a query, and the differences between two such
identities.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from typing import Any

from evenflow.settings.durations import parse_duration

CHANGEABLE = ("max_jump", "out_of_orderness")
"""The settings of a query that may change while it runs.
Of a query that has begun, an identity has their first values.
"""


def fingerprint(identity: dict[str, Any]) -> str:
    """16 hex digits over these (JSON) fields.
    They differ when any field differs, and the order of fields is ignored.
    """
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changes(before: Any, now: Any, name: str = "") -> list[str]:
    """The fields that differ between two nested dicts, each as `query.window: "1m" -> "30s"`, sorted by
    name.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted({*before, *now})
        return [
            line
            for key in keys
            for line in changes(before.get(key), now.get(key), f"{name}.{key}" if name else str(key))
        ]
    return [] if before == now else [f"{name}: {_word(before)} -> {_word(now)}"]


def with_forwarding(identity: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The identity, and where it lacks forwarding, that it is off and the seed of the other one.

    A query without forwarding has no seed that counts, so a change of forwarding is no change of the seed.
    """
    how, others = identity.get("partitioner"), other.get("partitioner")
    if not isinstance(how, dict) or not isinstance(others, dict) or "forwarding" in how:
        return identity
    seed = {"seed": others["seed"]} if "seed" in others else {}
    return identity | {"partitioner": how | {"forwarding": "off"} | seed}


def with_most_workers(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity, and where it does not say the largest number of workers, that each has a partition.

    Queries that began before workers could share one, and those whose workers share none, say nothing.
    """
    how = identity.get("partitioner")
    if not isinstance(how, dict) or "max_workers" in how or "routed_partitions" not in how:
        return identity
    return identity | {"partitioner": how | {"max_workers": how["routed_partitions"]}}


def sizes_of_routing(identity: dict[str, Any]) -> tuple[Any, Any]:
    """The largest number of workers, and the number of routed partitions. None where the identity does not
    say.
    """
    how = identity.get("partitioner")
    fields = how if isinstance(how, dict) else {}
    return fields.get("max_workers"), fields.get("routed_partitions")


def begun_limits(identity: dict[str, Any]) -> dict[str, int | None]:
    """What the query in an identity has of `CHANGEABLE`, in ms (None: off). A value that no query can have
    is left out.
    """
    query = identity.get("query")
    fields = query if isinstance(query, dict) else {}
    limits: dict[str, int | None] = {}
    for name in CHANGEABLE:
        if name == "max_jump" and fields.get(name, "") is None:
            limits[name] = None
        elif name in fields:
            with suppress(ValueError):
                limits[name] = parse_duration(fields[name])
    return limits


def begun_lookup(identity: dict[str, Any]) -> str | None:
    """The SHA-256 of the lookup file of the query in an identity. None if the identity names none."""
    query = identity.get("query")
    lookup = query.get("lookup") if isinstance(query, dict) else None
    digest = lookup.get("sha256") if isinstance(lookup, dict) else None
    return digest if isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) else None


def _word(value: Any) -> str:
    if value is None:
        return "none"
    # A lone half of a surrogate pair, which a user may have written, cannot be encoded. It is escaped
    # instead.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
