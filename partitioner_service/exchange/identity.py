"""Which records of the sync topic are meant for this instance."""

from __future__ import annotations

import hashlib
import json

from evenflow.partitioners import Partitioner
from evenflow.settings import Settings


def identity_of(settings: Settings, partitioner: Partitioner) -> str:
    """32 hex digits over the query and all that makes the instances' partitioners alike.

    The number of workers is not among it, because a plan changes that.
    """
    alike = {
        "query": settings.query.name,
        "fingerprint": settings.fingerprint,
        "partitioner": partitioner.name,
        "options": partitioner.options.model_dump(mode="json"),
        "seed": partitioner.seed,
        "instances": partitioner.sources,
    }
    return hashlib.sha256(json.dumps(alike, sort_keys=True).encode()).hexdigest()[:32]
