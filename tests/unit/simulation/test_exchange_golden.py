"""Routing with a channel without delay and loss: what it was when the exchange had no channel and no
messages.

Then every source met every other one at the end of each interval. The figures were written down by that code,
and a change of a rule writes them anew, and says so: `python -m tests.unit.simulation.test_exchange_golden`.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenflow.partitioners import Partitioner
from evenflow.simulation import Channel, Entrant, KeyedStream, Scenario, generated
from evenflow.simulation import routing as routing_module
from evenflow.simulation.channel import Exchange
from evenflow.simulation.routing import route
from evenflow.simulation.streams import rank_hashes

GOLDEN = Path(__file__).with_name("exchange_golden.json")
WINDOW = {"window_ms": 3_000, "slide_ms": 500}


def mixed() -> KeyedStream:
    """Three tuples of four are uniform, the fourth Zipf 1.5. Silences of 38 s and 2.5 s, and disorder."""
    rng = np.random.default_rng(7)
    ranks = rng.integers(0, 400, 12_000)
    shares = np.cumsum(np.arange(1, 401) ** -1.5)
    ranks[3::4] = np.searchsorted(shares / shares[-1], rng.random(3_000))
    times = np.arange(12_000, dtype=np.int64) - 5_000
    times[4_000:] += 37_777
    times[8_000:] += 2_500
    times[2_000:10_000] -= rng.integers(0, 450, 8_000)
    return KeyedStream(rank_hashes(400)[ranks], ranks.astype(np.int32), times, 400, None)


STREAMS: dict[str, Callable[[], KeyedStream]] = {
    "mixed": cache(mixed),
    "shift": cache(lambda: generated("shift", tuples=12_000, keys=800, zipf=1.4)),
    "wrong-clock": cache(lambda: generated("wrong-clock", tuples=12_000, keys=800, zipf=1.2)),
}
WHO: dict[str, tuple[str, dict[str, Any]]] = {
    "evenflow": ("evenflow", {}),
    "evenflow, remembering": ("evenflow", {"tail": "remember", "price": 0.0}),
    "evenflow, weighted": ("evenflow", {"weights": (1.0, 2.0, 0.5)}),
    "dalton-cooperative": ("dalton-cooperative", {}),
    "dalton-cooperative, short": ("dalton-cooperative", {"dsync_ms": 150}),
    "dalton-cooperative, long": ("dalton-cooperative", {"dsync_ms": 1_850}),
    "dalton-cooperative, sharing": ("dalton-cooperative", {"share_loads": True, "share_steps": True}),
}
SCENARIOS: dict[str, dict[str, Any]] = {
    "1": {"workers": 12, "sources": 1, **WINDOW},
    "4": {"workers": 6, "sources": 4, **WINDOW},
    "3 cumulative": {"workers": 8, "sources": 3, "slide_ms": 700},
}


def _endless(sources: Sequence[Partitioner], channel: Channel, *, patience_ms: int) -> Exchange:
    return Exchange(sources, channel, patience_ms=10**12)


def digest(stream: str, who: str, scenario: str) -> str:
    name, options = WHO[who]
    given = Scenario(exchange=Channel(), **SCENARIOS[scenario])
    with pytest.MonkeyPatch.context() as patch:
        if stream == "wrong-clock":  # a source whose clock had gone wrong was waited for without end
            patch.setattr(routing_module, "Exchange", _endless)
        routed = route(STREAMS[stream](), Entrant(who, name, options), given)
    return sha256(routed.workers.tobytes()).hexdigest()[:16]


@pytest.mark.family
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_perfect_channel_routes_as_meetings_did(stream: str, who: str, scenario: str) -> None:
    assert digest(stream, who, scenario) == json.loads(GOLDEN.read_text())[f"{stream} | {who} | {scenario}"]


if __name__ == "__main__":
    found = {f"{s} | {w} | {c}": digest(s, w, c) for s in STREAMS for w in WHO for c in SCENARIOS}
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
