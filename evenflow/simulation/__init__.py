"""Partitioners over a stream without Kafka: what each of them would have done, in figures.

Admission rule: streams as arrays, their routing through any registered partitioner, and the figures of the
result. No service belongs here, and no clock except the one that measures `assign`. `streams` makes and
stores the tuples, `scenario` says how they are routed, `channel` carries what sources tell each other,
`routing` routes the tuples, `results` computes the figures, `provenance` says where they come from, `run`
runs several partitioners in processes, and `charts` draws. Importing the package also registers the Gymnasium
environments of `evenflow.elasticity.simulated.environments`.

>>> from evenflow.simulation import Scenario, entrant, generated, simulate
>>> stream = generated("zipf", tuples=10_000, keys=1_000, zipf=1.4)
>>> (result,) = simulate(stream, [entrant("hashing")], Scenario(workers=4))
>>> result.figures.ksr
1.0
"""

from gymnasium.envs.registration import register, registry

from evenflow.simulation.channel import Channel
from evenflow.simulation.provenance import Origin, Provenance, origin_of, provenance_of
from evenflow.simulation.results import Figures, SimulationResult
from evenflow.simulation.run import simulate
from evenflow.simulation.scenario import Entrant, Scenario, entrant
from evenflow.simulation.streams import STREAMS, KeyedStream, from_columns, generated, kind_of

__all__ = [
    "STREAMS",
    "Channel",
    "Entrant",
    "Figures",
    "KeyedStream",
    "Origin",
    "Provenance",
    "Scenario",
    "SimulationResult",
    "entrant",
    "from_columns",
    "generated",
    "kind_of",
    "origin_of",
    "provenance_of",
    "simulate",
]

for _name, _module in (
    ("ElasticStage", "environments"),
    ("ElasticChain", "environments"),
    ("ElasticGraph", "graph"),
):
    if f"evenflow/{_name}-v0" not in registry:
        register(f"evenflow/{_name}-v0", entry_point=f"evenflow.elasticity.simulated.{_module}:{_name}")
