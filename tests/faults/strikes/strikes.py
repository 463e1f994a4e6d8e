"""What faults do to the broker, to its topics and to the disk, and what people do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.faults.model.log import Entry, Log
from tests.faults.processes.parts import plan_of
from tests.faults.schedules.schedule import Fault
from tests.faults.strikes.damage import flipped
from tests.faults.strikes.losses import SIGNS

if TYPE_CHECKING:
    from tests.faults.run import Cluster


class Strikes:
    """The faults of one run that are not those of a single call."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world, self._broker, self._losses = cluster.world, cluster.broker, cluster.losses
        self._epoch = 0

    def by_kind(self) -> dict[str, Callable[[Fault], object]]:
        """What each kind of fault does."""
        damage = ("truncate routed", "trim routed", "truncate input", "trim input", "truncate partials")
        return dict.fromkeys(damage, self._damage) | {
            "rebalance": self._rebalance,
            "plan": self._plan,
            "wall step": self._wall_step,
            "task fails": self._task_fails,
            "expire offsets": self._expire_offsets,
            "lose ends": self._lose_ends,
            "offsets fall back": self._offsets_fall_back,
            "add partitions": self._add_partitions,
            "change limits": self._change_limits,
            "damage state": self._damage_state,
            "recreate input": self._recreate,
            "recreate routed": self._recreate,
        }

    def _rebalance(self, _: Fault) -> None:
        self._broker.groups.rebalance("q.partitioner")

    def _wall_step(self, fault: Fault) -> None:
        step = self._world.wall_steps[-1][1] + round(fault.draw % 14_400_000) - 7_200_000
        self._world.wall_steps.append((self._world.now, step))

    def _task_fails(self, _: Fault) -> None:
        for driver_of in self._cluster.sessions.values():
            driver_of.fails = 1

    def _plan(self, fault: Fault) -> None:
        topic = self._broker.topics.get("q.plan")
        if topic is None:
            return
        self._epoch += 1
        known = self._cluster.settings[0].with_input_partitions(self._cluster.schedule.shape.inputs)
        plan = plan_of(fault, known, self._epoch)
        value = plan.encode(known.fingerprint)
        offset = topic.logs[0].append(Entry(plan.key, value, None, 0, None))
        for name in list(self._cluster.planes):
            delay = self._world.random.uniform(0.0, 1.0)
            self._world.at(
                delay,
                lambda name=name: (
                    name in self._cluster.planes and self._cluster.planes[name].offer(offset, value)
                ),
            )

    def _add_partitions(self, fault: Fault) -> None:
        """The input topic grows. Members of the group notice it a little later."""
        if self._cluster.schedule.shape.start == "latest" and self._cluster.writer.begins is None:
            # The query may begin behind the end of a partition, and then waits for another one.
            self._world.at(1.0, lambda: self._add_partitions(fault))
            return
        draw, logs = Random(fault.draw), self._broker.topics["in"].logs
        for _ in range(draw.choice((1, 1, 2))):
            logs.append(Log("in", len(logs)))
            self._cluster.growth.add(logs[-1].number)
            self._cluster.writer.fill(logs[-1].number, draw)
        self._world.at(fault.seconds, lambda: self._rebalance(fault))

    def _change_limits(self, fault: Fault) -> None:
        """All instances get another `max_jump`, a larger `out_of_orderness` or both, and are started again
        one by one.
        """
        if self._cluster.writer.begins is None:
            self._world.at(1.0, lambda: self._change_limits(fault))  # the query has not begun
            return
        draw = Random(fault.draw)
        which = draw.choice(
            (("max_jump",), ("out_of_orderness",), ("out_of_orderness",), ("max_jump", "out_of_orderness"))
        )
        before = self._cluster.deployed[0].query
        drawn = {
            "max_jump": draw.choice((None, 1_000, 5_000, 60_000)),
            "out_of_orderness": before.out_of_orderness + draw.choice((1_000, 3_000, 6_000)),
        }
        query = before.model_copy(update={name: drawn[name] for name in which})
        self._cluster.deployed = [one.model_copy(update={"query": query}) for one in self._cluster.deployed]
        for number in range(len(self._cluster.deployed)):
            self._world.at(draw.uniform(0.0, 2.0 + fault.seconds), lambda number=number: self._stop(number))

    def _stop(self, number: int) -> None:
        """An instance is stopped, and somebody starts it again."""
        for process in self._cluster.running:
            if process.name.startswith(f"p{number}."):
                process.kill_soon()

    def _expire_offsets(self, fault: Fault) -> None:
        """All instances stop, the broker forgets their offsets, and they start again."""
        self._cluster.outage_until = self._world.now + fault.seconds + 8.0
        self._kill_instances()

        def expire() -> None:
            group = self._broker.groups.of("q.partitioner")
            if group.members or not group.offsets:
                return
            parts = sorted(group.offsets)
            draw = Random(fault.draw)
            gone = parts if draw.random() < 0.7 else draw.sample(parts, draw.randint(1, len(parts)))
            self._losses.note_expired([number for _, number in gone])
            for part in gone:
                del group.offsets[part]

        self._world.at(fault.seconds + 7.5, expire)

    def _offsets_fall_back(self, fault: Fault) -> None:
        """All instances die, and committed offsets are those of some commits before, when somebody takes
        over.
        """
        self._kill_instances()
        group, draw = self._broker.groups.of("q.partitioner"), Random(fault.draw)

        def fall() -> None:
            fallen = {}
            for part, known in sorted(group.before.items()):
                now = group.offsets.get(part)
                older = [one for one in known if now is not None and one.offset < now.offset]
                if now is not None and older and (not fallen or draw.random() < 0.7):
                    group.offsets[part] = draw.choice((*older[-4:], older[-1], older[-1]))
                    fallen[part[1]] = now.offset, group.offsets[part].offset
            if fallen:
                self._losses.note_fallen(fallen)

        self._world.at(fault.seconds, fall)

    def _kill_instances(self) -> None:
        for process in self._cluster.running:
            if process.name.startswith("p"):
                process.kill_soon()

    def _lose_ends(self, fault: Fault) -> None:
        """All instances die, and a routed partition loses what they wrote last, before anybody takes over."""
        self._kill_instances()
        self._world.at(fault.seconds, lambda: self._damage(replace(fault, kind="truncate routed")))

    def _damage_state(self, fault: Fault) -> None:
        """A bit of the newest state of a bucket flips on the disk."""
        draw, held = Random(fault.draw), self._cluster.storage.files.held
        versions = sorted(path for path in held if path.endswith(".delta") and held[path])
        if versions:
            path = draw.choice(versions[-3:])
            name = draw.choice(sorted(held[path]))
            held[path] = {**held[path], name: (flipped(bytes(held[path][name][0]), draw),)}
            self._losses.note(f"a bit of {name[0]} in {path}", "state is damaged")

    def _damage(self, fault: Fault) -> None:
        kind, _, role = fault.kind.partition(" ")
        topic = self._broker.topics.get("in" if role == "input" else f"q.{role}")
        if topic is None:
            return
        draw = Random(fault.draw)
        log = topic.logs[draw.randrange(len(topic.logs))]
        if kind == "truncate":
            lost = log.truncate(log.end - draw.randint(1, 3 if role == "partials" else 12))
            if lost:
                self._losses.note(f"the last {lost} records of {topic.name}[{log.number}]", SIGNS[role])
                if role == "input":
                    self._losses.of_input = True
                    self._cluster.writer.grow_again(log.number, draw)
        elif log.end > log.begin:
            before = log.begin
            log.trim(log.begin + draw.randint(1, log.end - log.begin))
            if log.begin > before:
                self._losses.note(f"{topic.name}[{log.number}] up to offset {log.begin - 1}", SIGNS[role])

    def _recreate(self, fault: Fault) -> None:
        """A topic is deleted and made again. Who writes the input goes on."""
        role = fault.kind.partition(" ")[2]
        name = "in" if role == "input" else f"q.{role}"
        if name not in self._broker.topics or self._cluster.partitioners_are_over:
            return
        self._broker.recreate(name)
        self._losses.note(f"all of {name}", SIGNS[role])
        self._losses.of_input |= role == "input"
