"""Queue models against theory, and the loads that come to them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.elasticity.simulated.arrivals import Arrivals, Pareto, Poisson, Trace
from evenflow.elasticity.simulated.objective import Form, Objective, Outcome
from evenflow.elasticity.simulated.queues import LN20, QueueModel, latency_bound, lindley, service_rate
from evenflow.errors import ConfigError

RATES = st.floats(0, 1000)


def played(model: QueueModel, *, arrivals: float, service: float, steps: int, length_s: float) -> list[int]:
    """Queues at the end of each step."""
    rng, queue, result = np.random.default_rng(3), 0, []
    for _ in range(steps):
        queue = model.step(rng, arrivals=arrivals, service=service, queue=queue, length_s=length_s).queue
        result.append(queue)
    return result


def test_gustafsons_law_adds_the_parallel_share_of_each_unit() -> None:
    assert service_rate(1.0, mu=10, rho=0.3) == pytest.approx(10)
    assert service_rate(5.0, mu=10, rho=1) == 50
    assert service_rate(5.0, mu=10, rho=0.5) == 30
    assert service_rate(np.array([1.0, 2.0]), mu=10, rho=0).tolist() == [10, 10]


def test_the_latency_bound_is_that_of_003() -> None:
    assert latency_bound(100, 110, 0) == pytest.approx(math.log(20) / 10)
    assert latency_bound(100, 110, 11) == pytest.approx(math.log(20) / 10 + 0.1 * math.log(20))
    assert latency_bound(110, 110, 0) == math.inf


@given(RATES, st.floats(0.1, 1000), st.floats(0, 1e6), st.floats(0, 100))
def test_the_latency_bound_grows_with_load_and_queue_and_falls_with_service(
    arrivals: float, service: float, queue: float, more: float
) -> None:
    bound = latency_bound(arrivals, service, queue)
    assert latency_bound(arrivals + more, service, queue) >= bound
    assert latency_bound(arrivals, service, queue + more) >= bound
    assert latency_bound(arrivals, service + more, queue) <= bound


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=30),
    st.floats(0, 20),
)
def test_waits_are_those_of_lindleys_recursion(tuples: list[tuple[float, float]], first: float) -> None:
    gaps, services = map(np.array, zip(*tuples, strict=True))
    wait, served, expected = first, 0.0, []
    for gap, service in tuples:
        wait = max(0.0, wait + served - gap)
        served = service
        expected.append(wait)
    np.testing.assert_allclose(lindley(gaps, services, first=first), expected, atol=1e-9)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_the_mean_queue_of_mm1_is_that_of_theory(load: float) -> None:
    queues = played(QueueModel(), arrivals=100, service=100 / load, steps=4000, length_s=1)
    assert np.mean(queues) == pytest.approx(load / (1 - load), rel=0.1)


@pytest.mark.parametrize("cvs", [(0.0, 1.0), (1.0, 2.0), (0.5, 0.5)])
def test_the_mean_wait_of_gg1_is_near_kingmans_formula(cvs: tuple[float, float]) -> None:
    rng, load, count = np.random.default_rng(5), 0.9, 400_000
    shapes = [None if cv == 0 else 1 / cv**2 for cv in cvs]
    gaps, services = (
        np.full(count, mean) if shape is None else rng.gamma(shape, mean / shape, count)
        for mean, shape in zip((1.0, load), shapes, strict=True)
    )
    kingman = load * load / (1 - load) * (cvs[0] ** 2 + cvs[1] ** 2) / 2
    assert np.mean(lindley(gaps, services)) == pytest.approx(kingman, rel=0.15)


def test_the_95th_percentile_of_a_stable_mm1_is_that_of_the_bound() -> None:
    served = QueueModel().step(np.random.default_rng(1), arrivals=100, service=200, queue=0, length_s=1000)
    assert served.latency_s == pytest.approx(LN20 / 100, rel=0.03)


@given(RATES, st.floats(1, 1000), st.integers(0, 5000), st.floats(0, 3), st.floats(0, 3))
def test_no_tuple_is_lost_or_made_in_a_step(
    arrivals: float, service: float, queue: int, arrival_cv: float, service_cv: float
) -> None:
    model = QueueModel(arrival_cv=round(arrival_cv, 1), service_cv=round(service_cv, 1))
    served = model.step(np.random.default_rng(1), arrivals=arrivals, service=service, queue=queue, length_s=2)
    assert served.queue == queue + served.arrivals - served.departures
    assert min(served.queue, served.departures) >= 0
    assert (served.latency_s is None) == (served.arrivals == 0)


def test_an_overloaded_queue_grows_by_what_cannot_be_served() -> None:
    queues = played(QueueModel(), arrivals=100, service=40, steps=50, length_s=10)
    assert queues[-1] == pytest.approx(50 * 600, rel=0.02)


def test_a_backlog_of_any_size_costs_no_time_to_simulate() -> None:
    served = QueueModel().step(np.random.default_rng(1), arrivals=100, service=50, queue=10**12, length_s=10)
    assert served.departures == pytest.approx(500, abs=120)
    assert served.latency_s == pytest.approx(10**12 / 50, rel=0.01)


def test_pareto_rates_have_their_least_and_their_mean() -> None:
    rng = np.random.default_rng(2)
    rates = [Pareto(alpha=3, least=50).rate(step, rng) for step in range(20_000)]
    assert min(rates) >= 50
    assert np.mean(rates) == pytest.approx(75, rel=0.03)


def test_a_trace_gives_each_step_its_share_of_the_record_and_begins_again() -> None:
    rng = np.random.default_rng(0)
    trace = Trace(np.array([60.0, 120.0]), period_s=60, step_s=1, speed=60)
    assert [trace.rate(step, rng) for step in range(4)] == pytest.approx([60, 120, 60, 120])
    slow = Trace(np.array([60.0, 120.0]), period_s=60, step_s=40, copies=2)
    assert [slow.rate(step, rng) for step in range(3)] == pytest.approx([2, 3, 4])
    wide = Trace(np.array([60.0, 120.0]), period_s=60, step_s=180)
    assert wide.rate(0, rng) == pytest.approx(240 / 180)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Poisson(0),
        lambda: Pareto(alpha=-1),
        lambda: Pareto(least=math.inf),
        lambda: Trace(np.array([]), period_s=1, step_s=1),
        lambda: Trace(np.array([0.0]), period_s=1, step_s=1),
        lambda: Trace(np.array([1.0, -1.0]), period_s=1, step_s=1),
        lambda: Trace(np.array([1.0]), period_s=1, step_s=0),
    ],
)
def test_a_load_that_cannot_be_is_refused(make: "type[Arrivals]") -> None:
    with pytest.raises(ConfigError):
        make()


def outcome(*, service: float = 200, waiting: float = 0, queue: float = 0, units: int = 16) -> Outcome:
    return Outcome(arrivals=100, service=service, waiting=waiting, queue=queue, units=units)


def test_the_reward_takes_a_third_for_each_of_latency_queue_and_units() -> None:
    objective = Objective(latency_s=1, most_units=64)
    assert objective.reward(outcome()) == pytest.approx(-16 / 64 / 3)
    assert objective.reward(outcome(service=100)) == pytest.approx(-(1 + 0.25) / 3)
    assert objective.reward(outcome(queue=101)) == pytest.approx(-(1 + 0.25) / 3)
    assert objective.reward(outcome(service=50, queue=101, units=64)) == pytest.approx(-1)
    assert Objective(latency_s=1, most_units=64, most_queue=5).reward(outcome(queue=6)) < -1 / 3


def test_the_linear_form_takes_latency_by_its_length_and_never_more_than_a_third() -> None:
    linear = Objective(latency_s=1, most_units=64, form="linear")
    half = LN20 / 0.5  # spare tuples/s with which the bound is half of the budget
    assert linear.reward(outcome(service=100 + half)) == pytest.approx(-(0.5 + 0.25) / 3)
    assert linear.reward(outcome(service=100)) == pytest.approx(-(1 + 0.25) / 3)
    assert linear.reward(outcome(service=101)) == pytest.approx(-(1 + 0.25) / 3)


def test_the_latency_counts_what_waits_when_the_step_begins_and_the_queue_what_waits_when_it_ends() -> None:
    objective = Objective(latency_s=1, most_units=64)
    units = 16 / 64
    assert objective.reward(outcome(waiting=1_000)) == pytest.approx(-(1 + units) / 3)
    assert objective.reward(outcome(queue=1_000)) == pytest.approx(-(1 + units) / 3)


@given(
    queue=st.floats(0, 1e9),
    more=st.floats(1, 1e9),
    service=st.floats(1e-12, 1e6),
    form=st.sampled_from(["paper", "linear", "backlog"]),
)
def test_a_longer_queue_is_never_better_and_under_backlog_always_worse(
    queue: float, more: float, service: float, form: Form
) -> None:
    objective = Objective(latency_s=1, most_units=64, form=form)
    less, longer = (objective.reward(outcome(service=service, queue=at)) for at in (queue, queue + more))
    assert longer <= less <= 0
    if form == "backlog" and more > queue / 1e9:
        assert longer < less


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("queue", [1e4, 1e6])
def test_once_a_backlog_has_formed_more_units_pay_under_backlog_and_fewest_under_paper(
    rho: float, queue: float
) -> None:
    units = np.arange(1, 65)

    def best(form: Form) -> int:
        objective = Objective(latency_s=1, most_units=64, form=form)
        rewards = [
            objective.reward(
                outcome(
                    service=float(service_rate(k, mu=10.0, rho=rho)), waiting=queue, queue=queue, units=int(k)
                )
            )
            for k in units
        ]
        return int(units[np.argmax(rewards)])

    assert best("paper") == 1
    assert best("backlog") > 60
