"""The coordinator of consumer groups: members, generations, assignments by range, committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from tests.faults.model.errors import Refused
from tests.faults.model.log import Committed
from tests.faults.processes.world import Process

if TYPE_CHECKING:
    from tests.faults.model.broker import Broker

Parts = list[tuple[str, int]]


@dataclass(eq=False)
class Member:
    """A member of a group.

    heard_at: when its client hears that a rebalance is under way. given: generation and partitions of the
    last assignment. gone: no longer a member.
    """

    name: str
    process: Process | None
    topics: list[str]
    session: float
    heartbeat: float
    joined: bool = True
    heard_at: float = 0.0
    given: tuple[int, Parts] | None = None
    gone: bool = False


@dataclass
class Group:
    """One group.

    offsets: (topic, partition) -> what is committed. before: all that was committed, the oldest first.
    on_first: gets the first offsets ever. on_change: gets the offsets that a transaction has changed.
    """

    name: str
    offsets: dict[tuple[str, int], Committed] = field(default_factory=dict)
    before: dict[tuple[str, int], list[Committed]] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    generation: int = 0
    rebalancing: bool = False
    on_first: Callable[[dict[tuple[str, int], Committed]], object] | None = None
    on_change: Callable[[dict[tuple[str, int], Committed]], object] | None = None

    def take(self, found: dict[tuple[str, int], Committed]) -> None:
        """Take over these offsets. Of two, the one that was written last counts, whichever transaction
        ends first.
        """
        if self.on_first is not None:
            self.on_first(found)
            self.on_first = None
        changed = {
            part: offset
            for part, offset in found.items()
            if part not in self.offsets or self.offsets[part].written < offset.written
        }
        self.offsets |= changed
        for part, offset in changed.items():
            self.before.setdefault(part, []).append(offset)
        if self.on_change is not None:
            self.on_change(changed)


class Groups:
    """All groups of the broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._groups: dict[str, Group] = {}
        self._count = 0

    def of(self, name: str) -> Group:
        """The group of this name, which need not exist yet."""
        result = self._groups.get(name)
        if result is None:
            result = self._groups[name] = Group(name)
        return result

    def join(self, name: str, process: Process | None, topics: list[str], config: dict[str, Any]) -> Member:
        """A new member."""
        self._count += 1
        group = self.of(name)
        member = Member(
            f"m{self._broker.world.random.randrange(1000):03d}-{self._count}",
            process,
            topics,
            float(config.get("session.timeout.ms", 45_000)) / 1000,
            float(config.get("heartbeat.interval.ms", 3_000)) / 1000,
        )
        group.members[member.name] = member
        self.rebalance(name)
        return member

    def rejoin(self, name: str, member: Member) -> None:
        """A member has given up its partitions and waits for new ones."""
        member.joined = True
        self._complete_when_all_have_joined(self.of(name))

    def leave(self, name: str, member: Member) -> None:
        """A member goes."""
        group = self.of(name)
        if group.members.pop(member.name, None) is not None:
            member.gone = True
            self.rebalance(name)

    def rebalance(self, name: str) -> None:
        """Ask all members to give up what they have and to join again."""
        group, world = self.of(name), self._broker.world
        if not group.rebalancing:
            group.rebalancing = True
            for member in group.members.values():
                member.joined = member.given is None
                member.heard_at = world.now + world.random.uniform(0, member.heartbeat)
        self._watch(group)
        world.at(0.0, lambda: self._complete_when_all_have_joined(group))

    def stalled(self, process: Process) -> None:
        """A process no longer sends heartbeats, or may not. Members of it are expelled when their time is
        over.
        """
        for group in self._groups.values():
            for member in group.members.values():
                if member.process is process:
                    self._broker.world.at(
                        member.session + 0.001, lambda g=group, m=member: self._expire(g, m)
                    )

    def check(self, name: str, generation: int, member: str) -> None:
        """Whether the broker takes transactional offsets from this member. Raises Refused.

        Without a generation it takes them from anybody, even while the group has members.
        """
        group = self.of(name)
        if generation < 0 and not member:
            return
        if member not in group.members:
            raise Refused(KafkaError.UNKNOWN_MEMBER_ID)
        if generation != group.generation:
            raise Refused(KafkaError.ILLEGAL_GENERATION)

    def _watch(self, group: Group) -> None:
        for member in list(group.members.values()):
            if member.process is not None and member.process.stalled_since is not None:
                left = member.process.stalled_since + member.session + 0.001 - self._broker.world.now
                self._broker.world.at(max(0.0, left), lambda m=member: self._expire(group, m))

    def _expire(self, group: Group, member: Member) -> None:
        since = None if member.process is None else member.process.stalled_since
        if member.gone or since is None or self._broker.world.now - since < member.session:
            return
        self._broker.note("expelled", f"{member.name} of {member.process.name} from {group.name}")
        self.leave(group.name, member)

    def _complete_when_all_have_joined(self, group: Group) -> None:
        if not group.rebalancing or not all(member.joined for member in group.members.values()):
            return
        group.rebalancing = False
        group.generation += 1
        shares = self._by_range(group)
        for name, member in group.members.items():
            member.given = (group.generation, shares.get(name, []))
            member.joined = False
        if group.members:
            said = "; ".join(
                f"{m.process.name if m.process else '?'}: {[p for _, p in m.given[1]]}"
                for m in group.members.values()
                if m.given
            )
            self._broker.note("generation", f"{group.generation} of {group.name}: {said}")

    def _by_range(self, group: Group) -> dict[str, Parts]:
        shares: dict[str, Parts] = {}
        for topic in sorted({topic for member in group.members.values() for topic in member.topics}):
            names = sorted(name for name, member in group.members.items() if topic in member.topics)
            count = len(self._broker.topics[topic].logs) if topic in self._broker.topics else 0
            each, more = divmod(count, len(names))
            start = 0
            for place, name in enumerate(names):
                stop = start + each + (place < more)
                shares.setdefault(name, []).extend((topic, number) for number in range(start, stop))
                start = stop
        return shares
