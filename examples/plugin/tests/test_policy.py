"""The policy decides by its name, as in `[control]`, in evenflow's simulator of a stage that gets more and
more tuples.
"""

from evenflow.elasticity import create
from evenflow.elasticity.simulated.arrivals import Poisson
from evenflow.elasticity.simulated.driving import drive
from evenflow.elasticity.simulated.environments import ElasticStage


def test_a_stage_that_stays_busy_gets_workers_until_it_keeps_up() -> None:
    environment = ElasticStage(arrivals=Poisson(100), kmax=32, start=1)
    policy = create("turnstile.policy:Patient", bounds=environment.bounds, patience=2)
    assert policy.name == "turnstile.policy:Patient"
    played = drive(policy, environment, steps=120, seed=1)
    assert played.p[0] == 1
    assert (played.p[1:] <= played.p[:-1] + 1).all(), "one worker at a time"
    assert 1 < played.p[-1] < 32
    assert played.waiting[-1] < played.waiting.max()
