"""The data plane's loop: read a block, route it, write it, and commit every so often.

Everything here is called from the data plane's thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.begin.added_partitions import all_have_ended
from partitioner_service.block import Slice
from partitioner_service.exchange.member import ELECTING
from partitioner_service.kafka.sink import CommitAborted
from partitioner_service.plane.aborts import Aborts
from partitioner_service.plane.onlooker import Onlooker
from partitioner_service.plane.opening import Parts
from partitioner_service.plane.questions import Questions
from partitioner_service.plane.renewal import Renewal
from partitioner_service.plane.rhythm import ChosenRhythm
from partitioner_service.plane.schema_wait import SchemaWait
from partitioner_service.plane.skips import behind
from partitioner_service.reports import status
from partitioner_service.reports.health import broker_gone, standing_still, warnings_of
from partitioner_service.reports.key_answer import key_answer
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.reports.rejections import RejectionCounts
from partitioner_service.reports.telemetry import Reports
from partitioner_service.routing.pieces import RoutedBlock
from partitioner_service.routing.plan_inbox import PlanInbox
from partitioner_service.routing.planned_partitioner import furthest
from partitioner_service.routing.session import Stint
from topics.query.skip_orders import SkipAnswer
from topics.schemas.registry import RegistryAway

log = logging.getLogger(__name__)

_STATUS_EVERY = 0.5
"""Seconds between two statuses."""
_GRACE = 10.0
"""Seconds that a stopping instance waits for the broker, all calls together."""


class Loop:
    """Does one step after the other with parts that are open.

    The loop closes none of its parts. reports: makes the telemetry. questions: about keys, answered
    between two blocks. latest: where other threads find the newest telemetry and status.
    """

    def __init__(
        self,
        settings: Settings,
        parts: Parts,
        *,
        plan_inbox: PlanInbox,
        reports: Reports,
        questions: Questions,
        talk: LogLines,
        latest: status.Latest,
        stop: threading.Event,
        clock: Callable[[], float],
        onlooker: Onlooker | None,
    ) -> None:
        self.parts = parts
        """What the loop works with, all open."""
        self.work = status.Work(rejected=RejectionCounts(settings))
        """What was done since the start of the process."""
        self._settings = settings
        self._rhythm = ChosenRhythm(
            settings.partitioner,
            routed=self._partitions_in_use(),
            batches=parts.gate.state() is not None,
        )
        self._plan_inbox = plan_inbox
        self._reports = reports
        self._questions = questions
        self._talk = talk
        self._latest = latest
        self._stop = stop
        self._clock = clock
        self._onlooker = onlooker
        self._schema_wait = SchemaWait(clock=clock)
        self._aborts = Aborts(parts.source)
        self._renewal = Renewal(clock=clock)
        self._rewinds = self._rebalances = 0
        self._status_at = -_STATUS_EVERY

    def step(self) -> None:
        """Read the records that have come and route them. Commit or report if it is time."""
        try:
            self.parts.sink.renew()
            self._obey_orders()
            self._read_and_route()
        except CommitAborted as error:
            self._go_back(error)

    def _read_and_route(self) -> None:
        # What is due now must not wait for another block.
        self._write_all(self.parts.gate.due(self.parts.source.states))
        now = self._rhythm.now
        most, patience = self.parts.gate.reading(now.block_tuples, now.linger / 1000)
        blocks = self.parts.source.read(most, patience)
        # After a rewind the instance owns other partitions, or a transaction was aborted. The workers may
        # then not have heard of marks that were told before, so all marks are told again.
        if self.parts.source.rewinds != self._rewinds:
            self._rewinds = self.parts.source.rewinds
            self.parts.router.forget_what_was_told()
            self.parts.router.plans.continue_from(furthest(self.parts.source.states))
        if self.parts.source.rebalances != self._rebalances:
            self._rebalances = self.parts.source.rebalances
            self.parts.router.session.owe_stint()
        self._learn_plans()
        self._hear_the_others()
        self._tell_speeds()
        self._latest.progressed()
        self.parts.watch.check()
        self._begin_stint()
        if self.parts.added.due:
            # What is told and committed together with new partitions must stand behind all that was read.
            self._write_all(self.parts.gate.empty(self.parts.source.states, why="partitions"))
        if self.parts.added.step(self.commit):
            self.parts.gate.drop()
            return  # the blocks are read again
        self._work_through_all(blocks)
        self._tell_the_others()
        self._put_to_sleep()
        self._let_out(nothing_came=not blocks)
        self._tell_the_workers()
        self._questions.answer_one(self._explain)
        if self._renewal.due(self.parts.source.states):
            self.parts.sink.begin()  # only an open transaction is committed
        # Pausing a partition before its first record has come can lose its position in librdkafka.
        if not self.parts.source.just_assigned:
            self.parts.pace.hold_back_the_hasty()
        if self._clock() - self._status_at >= _STATUS_EVERY:
            self._refresh_status()
        if not self._commit_when_due() and self._reports.due:
            self._report()

    def _commit_when_due(self) -> bool:
        """Commit the open transaction if it is old enough. Returns whether it did."""
        open_for = self.parts.sink.open_for
        if open_for is None or open_for < self._rhythm.now.commit_interval / 1000:
            return False
        self.commit()
        return True

    def _begin_stint(self) -> None:
        """Write and commit the first frames of a stint, before any other frame of it.

        They have a transaction of their own. The first block of a process may have to wait until kernels are
        compiled, and that may take longer than a transaction may last.
        """
        source, router = self.parts.source, self.parts.router
        if source.states and router.session.stint is Stint.DUE:
            self.parts.sink.write_frames(
                router.begin_stint(source.states, source.totals, inputs=source.partition_count)
            )
            self.commit()

    def _work_through_all(self, blocks: Iterable[list[Slice]]) -> None:
        """Route these blocks.

        If the schema of a block cannot be had now, that block is read again a little later.
        """
        try:
            for slices in blocks:
                self._work_through(slices)
                self._schema_wait.over()
        except RegistryAway as error:
            # `states` stands behind the blocks that were routed, so only the others are read again.
            self.parts.source.rewind(self.parts.source.states)
            self._stop.wait(self._schema_wait.next(error))

    def _work_through(self, slices: list[Slice]) -> None:
        """Take a block, and write what is released because of it into the open transaction."""
        began = self._clock()
        self._write_all(self.parts.gate.take(slices, self.parts.source))
        if self._onlooker is not None:
            self._onlooker.block(self._clock() - began)

    def _let_out(self, *, nothing_came: bool) -> None:
        """Write what is released because time has passed, or because others wait for it."""
        gate, source = self.parts.gate, self.parts.source
        self._write_all(gate.due(source.states))
        # Others know this instance by what it has committed. Two that wait for each other would wait for
        # ever.
        if nothing_came and gate.holds and self.parts.pace.held_back:
            self._write_all(gate.empty(source.states, why="skew"))

    def _write_all(self, released: Iterator[RoutedBlock]) -> None:
        """Write each of these blocks as it is released, into the open transaction.

        What is released at once may be more than a transaction has time for. So it is committed in between.
        """
        began = self._clock()
        for routed in released:
            self._write(routed, self._clock() - began)
            self.work.busy_seconds += self._clock() - began
            self._commit_when_due()
            began = self._clock()
        self.work.busy_seconds += self._clock() - began

    def _write(self, routed: RoutedBlock, seconds: float) -> None:
        """Write a block. seconds: how long it took to route it."""
        workers = self.parts.router.plans.partitioner.workers
        self._reports.note(routed.sent, seconds, workers=workers)
        self.parts.sink.write_frames(routed.frames)
        self.parts.gate.written()
        for piece in routed.pieces:
            for group in piece.rejections:
                self.parts.sink.write_rejected(piece.slice.records, group)
        self.work.tuples += routed.tuples
        self.work.read += routed.read
        self.work.filtered += routed.filtered
        self.work.note(routed.sent)
        if self.parts.speeds is not None:
            self.parts.speeds.note(routed.sent.counts, routed.sent.loads)
        self.work.rejected.note(routed.rejections)
        self.work.blocks += 1

    def _obey_orders(self) -> None:
        """Go past batches that cannot be fetched, where an operator has ordered it.

        Only while no transaction is open: reading many orders may take longer than a transaction may last.
        """
        if self.parts.sink.open_for is not None:
            return
        source = self.parts.source
        for order in self.parts.skips.due(source.unfetchable.at(source.states)):
            # What stands before the offsets that are skipped is committed with them.
            self._write_all(self.parts.gate.empty(source.states, why="skip"))
            self.parts.sink.write_skipped(order)
            source.rewind({**source.states, order.partition: behind(source.states[order.partition], order)})
            self.work.read += order.count
            self.work.rejected.note_skipped(order.count)
            self.commit()
            self.parts.skips.answer(order, SkipAnswer(True, f"{order.count:,} offsets were skipped"))

    def commit(self, added: Mapping[int, PartitionState] | None = None) -> None:
        """Make what was written visible, together with the states of the input partitions.

        added: first states of input partitions that the query takes in.
        """
        gate, session = self.parts.gate, self.parts.router.session
        states = gate.released(self.parts.source.states)
        due = self._renewal.due(states)
        changed = {p: s for p, s in states.items() if p in due or s != self.parts.source.committed.get(p)}
        if session.stint is Stint.WRITTEN:
            changed = dict(states)
        # A transaction never commits without offsets. Only because of them does the broker refuse an instance
        # that is no longer a member of the group.
        changed = session.signed(changed or states)
        began = self._clock()
        self.parts.sink.commit({**changed, **session.signed(added or {})}, self.parts.source.group_metadata)
        self.parts.source.note_committed(changed)
        self.parts.source.move(gate.committed(changed))
        self._renewal.committed(changed)
        if self._onlooker is not None:
            self._onlooker.commit(self._clock() - began)
        self._aborts.over()
        self.work.commits += 1
        self._refresh_status()
        self._report()
        self.parts.learned.save_when_due(self.parts.router.plans.partitioner, self.parts.router.plans.epoch)

    def finish(self) -> None:
        """Commit the open transaction, if any.

        From now on all waiting for the broker is bounded by `_GRACE`.
        """
        self._bound_waiting()
        try:
            if self.parts.sink.open_for is not None:
                self.commit()
        except CommitAborted as error:
            log.warning("the last transaction was aborted; the next run reads its blocks again: %s", error)

    def abandon(self) -> None:
        """Abort the open transaction after an error.

        It may hold a part of an unfinished block, which must never be committed with the offsets before that
        block.
        """
        self._bound_waiting()
        try:
            self.parts.sink.abort()
        except (KafkaException, ServiceError) as error:
            log.warning("could not abort; the broker does after the transaction timeout: %s", error)

    def _bound_waiting(self) -> None:
        self.parts.sink.stop_within(_GRACE)
        self.parts.side.stop_within(_GRACE)

    def settle(self, may_commit: bool) -> None:
        """End the open transaction before partitions are given up: a transaction never spans a rebalance.

        The broker checks who is a member of the group, but not who owns a partition. It would accept offsets
        of a partition that has already moved. may_commit: False where the partitions are lost already.
        """
        try:
            self._settle(may_commit)
        finally:
            # An open batch is thrown away. Whoever owns its partitions next reads it again.
            self.parts.gate.drop()

    def _settle(self, may_commit: bool) -> None:
        if self.parts.sink.open_for is None:
            return
        if may_commit:
            try:
                self.commit()
                return
            except CommitAborted as error:
                log.warning(
                    "transaction aborted in a rebalance; the next owner reads its blocks again: %s", error
                )
        self.parts.sink.abort()

    def _go_back(self, error: CommitAborted) -> None:
        """Go on from the committed states, because the transaction was aborted."""
        self.parts.gate.drop()
        self._aborts.note(error)

    def all_ended(self) -> bool:
        """Whether every input partition has ended and this is committed, whichever instance owns it.

        A peer may die before its own partitions have ended, and this instance then has to take them over.
        Before an assignment nothing has ended, and not before the frames that begin the stint are written:
        they tell the workers what they must have seen, and the marks that the stint before did not tell all
        of them.
        """
        own = self.parts.source.states
        if not self.parts.source.share_known or (own and self.parts.router.session.stint is Stint.DUE):
            return False
        if not all(state.ended for state in own.values()):
            return False
        try:
            if self.parts.gate.holds:
                self._write_all(self.parts.gate.empty(own, why="end"))
            if self.parts.sink.open_for is not None:
                self.commit()
        except CommitAborted as error:
            self._go_back(error)
            return False
        known = self.parts.pace.everyone()
        if len(known) < self.parts.source.partition_count or not all(state.ended for state in known.values()):
            return False
        # A peer may have taken partitions in that this instance has not heard of.
        everyone = self.parts.source.look()
        if not all(state.ended for state in everyone.values()):
            return False
        if self.parts.source.added:
            raise all_have_ended(self._settings, self.parts.source.added)
        # An instance may have been assigned no partition. So states that an assignment would refuse are
        # refused here.
        self.parts.source.check(everyone)
        return True

    def _put_to_sleep(self) -> None:
        after = self.parts.pace.asleep()
        if after:
            # An open transaction is what makes `step` commit the new states, even if no record comes.
            self.parts.sink.begin()
            self.parts.source.move(after)

    def _tell_the_workers(self) -> None:
        """Tell marks that moved without a tuple: of partitions that fell asleep or are new to the
        instance.
        """
        frames = self.parts.router.punctuate(self.parts.gate.released(self.parts.source.states))
        if frames:
            self.parts.sink.write_frames(frames)

    # ---- the exchange: between blocks, never within one

    def _hear_the_others(self) -> None:
        if self.parts.member is not None:
            self.parts.member.hear(self.parts.router.plans.partitioner, furthest(self.parts.source.states))

    def _tell_the_others(self) -> None:
        member, states = self.parts.member, self.parts.source.states
        if member is not None:
            partitioner = self.parts.router.plans.partitioner
            member.stand(partitioner, elected=ELECTING in states)
            member.tell(partitioner, furthest(states))

    def _tell_speeds(self) -> None:
        if self.parts.speeds is not None:
            self.parts.speeds.tell(self.parts.router.plans.partitioner)

    # ---- plans, telemetry, status

    def _learn_plans(self) -> None:
        for plan in self._plan_inbox.arrived():
            self.parts.router.plans.learn(plan, reached=furthest(self.parts.source.states))

    def _report(self) -> None:
        record = self._reports.record(
            self.parts.source,
            self.parts.router,
            self.work,
            released=self.parts.gate.released(self.parts.source.states),
            ignored=self._plan_inbox.ignored,
            batches=self.parts.gate.state(),
            exchange=None if self.parts.member is None else self.parts.member.figures.state(),
            standing=standing_still(self._latest.shown),
            warnings=warnings_of(self._latest.shown),
        )
        self._latest.telemetry = record
        self.parts.side.telemetry(record.encode())

    def _explain(self, key: bytes) -> dict[str, Any]:
        plans, reached = self.parts.router.plans, furthest(self.parts.source.states)
        return key_answer(self._settings, plans, key, reached=reached, hot_key_of=self._reports.hot_key)

    def _worker_speeds(self) -> list[float]:
        """The measured speeds that the partitioner goes by, relative to their mean. Empty if there are
        none.
        """
        speeds = self.parts.router.plans.partitioner.speeds
        return [] if speeds is None else (speeds / speeds.mean()).round(3).tolist()

    def _stuck(self) -> list[dict[str, Any]]:
        source = self.parts.source
        return source.unfetchable.standing_still(source.states)

    def _broker_gone(self) -> list[dict[str, Any]]:
        """As in `LogLines.tell`: Kafka does not answer. Without records to read, nothing else of the loop
        would show it.
        """
        return broker_gone(self.parts.watch.servers, self.parts.watch.unanswered)

    def _partitions_in_use(self) -> int:
        """How many routed partitions get tuples."""
        return min(self.parts.router.plans.partitioner.workers, self._settings.routed_partitions)

    def _refresh_status(self) -> None:
        now = self._clock()
        self.work.measure(now)
        self._rhythm.look(routed=self._partitions_in_use(), rate=self.work.tuples_per_second)
        self._status_at = now
        batches = self.parts.gate.state()
        shown = {
            **status.running(self._settings, self.parts.source, self.parts.router, self.work),
            "batches": batches and batches.model_dump(mode="json"),
            "rhythm": self._rhythm.shown(),
        }
        standings = self._talk.tell(shown, self.work.rejected, self.parts.pace.states())
        self._latest.show(
            {
                **shown,
                "learning_since": self.parts.learned.since,
                "learned_at": self.parts.learned.kept_at,
                "plans_ignored": self._plan_inbox.ignored,
                "exchange": None if self.parts.member is None else self.parts.member.figures.shown(),
                "worker_speeds": self._worker_speeds(),
                "standing_still": [
                    *standings.still,
                    *self._schema_wait.standing_still(),
                    *self._stuck(),
                    *self._broker_gone(),
                ],
                "warnings": standings.warnings,
            }
        )
