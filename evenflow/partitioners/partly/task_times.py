"""How long the map and reduce tasks of a planned batch take, and how far these times are apart (001, section
4.6, technique 3).

A map task has one data block, and there are as many reduce tasks as data blocks. In units of `Prices`:

    map task      tuple * tuples + make * keys         of its data block
    reduce task   receive * fragments + row * keys     of the keys that hash to it

Hashing is random, and so is what a task's time has beyond its counts (`noise`). So a variance is the mean
over endlessly many repetitions. With w(k) = receive * fragments of k + row, and R reduce tasks, it has a
closed form:

    variance of the reduce tasks = (1/R - 1/R^2) * sum of w(k)^2
    with noise                   = variance + noise^2 * (1 - 1/R) * (variance + mean^2)

As in the paper the higher one of both variances counts. Two numbers that no plan of the batch changes make
batches of any size comparable: variances are divided by the square of the mean time of a map task when no key
is split, and the paper's LatencyVar_min is, for each batch, what the hash gives the reduce tasks when no key
is split (`Variances.floor`). What is above it is the `excess`. Without the floor hashing hides what a plan
does.
"""

from __future__ import annotations

from typing import NamedTuple

from evenflow.numeric.arrays import Int64s, Whole
from evenflow.numeric.kernels import kernel


class Prices(NamedTuple):
    """What tasks take. Any unit of time, the same in the first four."""

    tuple: float
    """For a tuple of a data block."""
    make: float
    """For a key of a data block: its partial result is made and sent."""
    receive: float
    """For a fragment of a key that a reduce task gets."""
    row: float
    """For a key of a reduce task: its partial result is merged, and a row of results is made."""
    noise: float
    """Standard deviation of a task's time that its counts do not explain, as a share of this time."""


class Variances(NamedTuple):
    """How far the times of a batch's tasks are apart, as shares of the square of a mean map task."""

    map: float
    """Variance of the map tasks."""
    reduce: float
    """Variance of the reduce tasks."""
    floor: float
    """Variance of the reduce tasks if no key were split."""

    @property
    def excess(self) -> float:
        """The higher variance above the floor, at least 0."""
        return excess_of(self)


class Scale(NamedTuple):
    """Turns an excess into the range of the costs: 001's equation in section 4.6."""

    most: float
    """The excess that stands for `most_cost`. No excess stands for `least_cost`."""
    least_cost: float
    """The cost of a batch without an excess."""
    most_cost: float
    """The cost of a batch with the excess `most`."""

    def cost(self, excess: float) -> float:
        """The cost that stands for this excess. Beyond `most` it goes on rising."""
        return rescaled(self, excess)


class Fragments(NamedTuple):
    """How a plan splits its keys."""

    keys: Whole
    """Different keys of the batch, whole or split."""
    fragments: Whole
    """Fragments of all keys together. A key that is not split has one."""
    squares: Whole
    """Sum of the squares of each key's number of fragments."""


UNPRICED = Prices(0.0, 0.0, 0.0, 0.0, 0.0)
UNSCALED = Scale(1.0, 0.0, 1.0)


@kernel
def rescaled(scale: Scale, excess: float) -> float:
    """The cost that stands for this excess."""
    return scale.least_cost + excess / scale.most * (scale.most_cost - scale.least_cost)


@kernel
def excess_of(variances: Variances) -> float:
    """The higher variance above the floor, at least 0."""
    return max(0.0, max(variances.map, variances.reduce) - variances.floor)


@kernel
def _reduced(plan: Fragments, tasks: int, prices: Prices) -> float:
    """The variance of the reduce tasks."""
    row, receive = prices.row, prices.receive
    weights = receive * receive * plan.squares + 2.0 * receive * row * plan.fragments + row * row * plan.keys
    variance = weights * (1.0 / tasks - 1.0 / (1.0 * tasks * tasks))
    return _noisy(variance, (receive * plan.fragments + row * plan.keys) / tasks, tasks, prices)


@kernel
def _noisy(variance: float, mean: float, tasks: int, prices: Prices) -> float:
    """The variance of so many tasks with noise."""
    return variance + prices.noise * prices.noise * (1.0 - 1.0 / tasks) * (variance + mean * mean)


@kernel
def variances_of(sizes: Int64s, cardinalities: Int64s, plan: Fragments, prices: Prices) -> Variances:
    """The variances of the tasks.

    sizes, cardinalities: tuples and keys of each data block, shape (P,). At least one price of the map tasks
    must be above 0.
    """
    tasks = sizes.shape[0]
    tuples, total, squares = 0, 0.0, 0.0
    for place in range(tasks):
        tuples += sizes[place]
        took = prices.tuple * sizes[place] + prices.make * cardinalities[place]
        total += took
        squares += took * took
    mean = total / tasks
    mapped = _noisy(max(0.0, squares / tasks - mean * mean), mean, tasks, prices)
    unit = (prices.tuple * tuples + prices.make * plan.keys) / tasks
    whole = Fragments(plan.keys, plan.keys, plan.keys)
    return Variances(
        mapped / (unit * unit),
        _reduced(plan, tasks, prices) / (unit * unit),
        _reduced(whole, tasks, prices) / (unit * unit),
    )
