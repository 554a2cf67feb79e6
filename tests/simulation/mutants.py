"""Rules broken on purpose. Each must break a promise visibly; otherwise nothing guards it."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.broker import storage
from penstock.broker.peers import (
    control_changes,
    control_plane,
    controller_channel,
)
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.peers.control_plane import ControlPlane
from penstock.broker.peers.topic_watch import TopicWatch
from penstock.broker.replicas import local
from penstock.broker.startup import decision
from penstock.controller import (
    broker_changes,
    isr_changes,
    leader_election,
    partition_states,
    reassignment,
    repair,
    topic_life,
)
from penstock.controller.context import ControllerContext
from penstock.controller.controller import Controller as ControllerItself
from penstock.controller.controller_election import ControllerElection
from penstock.controller.epoch import ControllerEpoch
from penstock.errors import ErrorCode
from penstock.log import follower_append, recovery, truncation
from penstock.log.log_dir_owner import LogDirOwner
from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore
from penstock.log.truncation import truncate_to
from penstock.metadata import paths, reader
from penstock.metadata.errors import StoreError
from penstock.metadata.records import decode
from penstock.metadata.shared.server import StoreServer
from penstock.metadata.store import SessionState
from penstock.replication import fetcher, isr_proposals, partitions, read_fencing
from penstock.replication.isr import Isr, out_of_sync
from penstock.replication.partition import Partition
from penstock.replication.proposal import OUTDATED, InSyncReplica
from simulation import stories, topic_stories, worker_stories
from simulation.steps import Story

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """A broken rule, and the faults that reveal it soonest."""

    apply: Callable[[Patch], None]
    faults: tuple[str, ...] = ()
    story: Story | None = None
    """A story that reveals it at once, where random seeds would take long."""
    seed: int = 0
    """The seed to try first, because it revealed the rule soonest. After other changes another seed
    may.
    """


def ack_before_replication(patch: Patch) -> None:
    patch.setattr(
        Partition, "advance", lambda self: self.log.advance_high_watermark(self.log.end_offset)
    )


def truncate_to_the_high_watermark(patch: Patch) -> None:
    """What Kafka did before KIP-101."""
    follow = Partition.follow

    def following(self: Partition, *args: Any, **kwargs: Any) -> bool:
        truncate_to(self.log, self.log.high_watermark)
        return follow(self, *args, **kwargs)

    patch.setattr(Partition, "follow", following)


def skip_epoch_checks(patch: Patch) -> None:
    """A former leader keeps serving, and no follower checks whether logs have diverged."""
    patch.setattr(Partition, "check_leader", lambda *_: None)
    patch.setattr(read_fencing, "diverging_epoch", lambda *_: None)


def never_truncate(patch: Patch) -> None:
    patch.setattr(read_fencing, "diverging_epoch", lambda *_: None)


def elect_out_of_sync_replicas(patch: Patch) -> None:
    elected = leader_election.elected

    def anyone(partition: Any, live: Any, **kwargs: Any) -> Any:
        return elected(partition, live, **(kwargs | {"allow_unclean": True}))

    patch.setattr(repair, "elected", anyone)


def commit_by_the_proposed_isr(patch: Patch) -> None:
    """A replica to be removed stops counting before the controller has agreed."""
    patch.setattr(Isr, "maximal", property(lambda self: self.proposed))


def join_the_isr_too_early(patch: Patch) -> None:
    def joins(isr: Isr, replica: int, *_: object) -> bool:
        return isr.change is None and replica not in isr.committed

    patch.setattr(isr_proposals, "may_join", joins)


def accept_isrs_of_former_leaders(patch: Patch) -> None:
    """The controller accepts AlterPartition from any broker."""

    def altered(context: Any, _: object, requested: Any) -> Any:
        partition = context.image.partition(requested.topic_partition)
        isr = tuple(each.broker for each in requested.isr)
        if partition is None or set(isr) == set(partition.isr):
            return None
        return replace(partition, isr=isr)

    patch.setattr(isr_changes, "altered_partition", altered)
    patch.setattr(isr_changes, "check_broker_epoch", lambda *_: None)


def write_in_a_past_controller_epoch(patch: Patch) -> None:
    """A former controller keeps writing."""

    async def write_each(self: Any, multis: Any) -> Any:
        return await self._store.multi_many([list(each) for each in multis])

    patch.setattr(ControllerEpoch, "write_each", write_each)


def obey_former_controllers(patch: Patch) -> None:
    """Disable both rules: connections of a later controller would end the former one's, too."""
    checked = ControlPlane._checked

    def from_anyone(self: ControlPlane, request: Any, _: int) -> Any:
        self._sender = (-1, 0)
        return checked(self, request, 0)

    patch.setattr(ControlPlane, "_checked", from_anyone)
    check = control_changes.check_epochs

    def broker_epoch_only(request: Any, image: Any, broker_epoch: int) -> None:
        check(replace(request, controller_epoch=2**30), image, broker_epoch)

    patch.setattr(control_changes, "check_epochs", broker_epoch_only)


def obey_before_registration(patch: Patch) -> None:
    """A broker carries out requests that were meant for its former process."""
    init = ControlPlane.__init__

    def begin(self: ControlPlane, *args: Any) -> None:
        init(self, *args)
        self._is_registered.set()

    patch.setattr(ControlPlane, "__init__", begin)


def ignore_broker_epochs(patch: Patch) -> None:
    """Neither leaders, nor the controller, nor other brokers check broker epochs."""
    patch.setattr(control_changes, "UNKNOWN_EPOCH", -(2**62))
    patch.setattr(read_fencing, "check_follower", lambda *_: None)
    patch.setattr(isr_proposals, "member", lambda _, broker: InSyncReplica(broker))
    obey_before_registration(patch)
    check = control_changes.check_epochs
    patch.setattr(
        control_changes, "check_epochs", lambda request, image, _: check(request, image, -(2**62))
    )


def ignore_unclean_shutdowns(patch: Patch) -> None:
    """A broker that registers again counts as if it had all its records."""
    patch.setattr(ControllerContext, "unclean_shutdown_brokers", property(lambda _: []))


def miss_changes_while_disconnected(patch: Patch) -> None:
    """A controller that reconnects to the store continues with its old image."""
    patch.setattr(
        ControllerElection,
        "_session_changed",
        lambda self, state: (
            self._controller.resign() if state is SessionState.EXPIRED else None,
            self._wake.set(),
        ),
    )


def forget_half_begun_reassignments(patch: Patch) -> None:
    """A new controller does not announce half-begun reassignments to leaders."""

    async def resume(context: Any) -> None:
        await reassignment.progress(context, reassignment.in_progress(context.image))

    patch.setattr(reassignment, "resume", resume)


def inherit_settings(patch: Patch) -> None:
    """Settings belong to a topic's name, even if the topic was created again."""

    def named(changes: Any, image: Any, _ahead: object) -> set[str]:
        return {each.topic_partition.topic for each in changes} - set(image.topic_configs)

    def kept(request: Any, image: Any, _ahead: object) -> Any:
        change = metadata_change(request, image, {})
        configs = {
            name: given
            for name, given in image.topic_configs.items()
            if name in change.image.topics
        }
        return replace(change, image=dataclass_replace(change.image, topic_configs=configs))

    metadata_change = control_changes.metadata_change
    miss_deletions(patch)
    patch.setattr(control_changes, "new_topics", named)
    patch.setattr(control_changes, "metadata_change", kept)


def take_lost_connections_for_refusals(patch: Patch) -> None:
    """An unknown outcome is taken for a refusal."""

    async def send(self: Any, multis: Any) -> Any:
        answers = await self._store.multi_many([(self._check, *each) for each in multis])
        return [each if isinstance(each, StoreError) else each[1:] for each in answers]

    trust_the_image(patch)
    patch.setattr(ControllerEpoch, "_send", send)


def send_control_requests_once(patch: Patch) -> None:
    """A failed control request is not sent again."""
    patch.setattr(controller_channel, "STALE", frozenset(ErrorCode))


def fail_by_one_reassignment(patch: Patch) -> None:
    """A reassignment that cannot complete fails the operation that checks it."""

    async def progress(context: Any, partitions: Any) -> bool:
        has_completed = False
        for each in partitions:
            topic, partition = context.image.topics.get(each.topic), context.image.partition(each)
            if topic is None or partition is None:
                continue
            move = reassignment.current(partition)
            is_moving = partition.adding_replicas or partition.removing_replicas
            if is_moving and set(move.target) <= set(partition.isr):
                has_completed |= await reassignment._complete(context, topic, each, partition, move)
        return has_completed

    patch.setattr(reassignment, "progress", progress)


def refuse_a_batch_without_its_first_records(patch: Patch) -> None:
    """A follower's first batch begins where its log begins."""
    checked = follower_append.checked_batches

    def strict(view: Any, next_offset: int, *, is_empty: bool) -> Any:
        return checked(view, next_offset, is_empty=is_empty and next_offset < 0)

    patch.setattr(follower_append, "checked_batches", strict)


def expect_settings_of_deleted_topics(patch: Patch) -> None:
    """The settings of a name that was used before are altered, although their node is gone."""
    creation, used = topic_life._creation, set[str]()

    def altering(planned: Any, existing: Any) -> Any:
        name = planned.topic.name
        before = {paths.topic_config(name)} if name in used else existing
        used.add(name)
        return creation(planned, before)

    patch.setattr(topic_life, "_creation", altering)


def drop_responses_during_a_takeover(patch: Patch) -> None:
    """Responses that come before the controller is active are lost."""

    async def start(self: Any) -> None:
        await self._start()
        self.check_for_changes()

    patch.setattr(ControllerItself, "start", start)


def miss_deletions(patch: Patch) -> None:
    """A deletion without notice leaves the topic in the broker's image."""
    patch.setattr(TopicWatch, "check", lambda _: None)


def keep_strays(patch: Patch) -> None:
    """A full set of control requests sets no stray aside."""
    patch.setattr(control_plane, "strays", lambda *_: {})


def look_for_strays_in_full_sets_only(patch: Patch) -> None:
    """Logs of topics that this broker finds deleted later stay in use."""

    async def ignore(_: object) -> None: ...

    patch.setattr(ControlPlane, "set_unknown_aside", ignore)


def keep_logs_of_replaced_topics(patch: Patch) -> None:
    """A broker that has no replica of the new topic goes on with its replica of the deleted one."""
    patch.setattr(control_plane, "of_replaced_topics", lambda *_: {})


def serve_the_log_of_a_deleted_topic(patch: Patch) -> None:
    """A log belongs to the topic of its name, whatever the topic's id."""
    keep_strays(patch)
    patch.setattr(partitions, "why_stray", lambda *_, **__: None)


def fail_by_a_malformed_node(patch: Patch) -> None:
    patch.setattr(reader, "decode_or_skip", decode)


def elect_uncleanly_during_a_controlled_shutdown(patch: Patch) -> None:
    """A broker that is shutting down counts as gone."""
    original = ControllerContext.live_or_shutting_down_replicas

    def without_stopping(self: ControllerContext, topic_partition: Any, replicas: Any) -> Any:
        live = original(self, topic_partition, replicas)
        return [each for each in live if each not in self.shutting_down]

    patch.setattr(ControllerContext, "live_or_shutting_down_replicas", without_stopping)


def wait_for_the_old_controller(patch: Patch) -> None:
    patch.setattr(PeerConnection, "drop_if_moved", lambda _: None)


def trust_an_empty_disk(patch: Patch) -> None:
    """A broker that was in sync leads with whatever is on its disk."""
    patch.setattr(decision, "lost_replicas", lambda *_: [])


def forget_an_unclean_shutdown(patch: Patch) -> None:
    """Only the process that found the unclean shutdown remembers it."""

    def mark(self: LogDirOwner) -> None:
        self.had_unclean_shutdown = True

    patch.setattr(LogDirOwner, "mark_unclean_shutdown", mark)


def trust_gaps(patch: Patch) -> None:
    """A gap in a log is one that compaction left."""
    recover = recovery._recover
    patch.setattr(recovery, "_recover", lambda *args: (recover(*args)[0], []))


def read_settings_that_are_behind(patch: Patch) -> None:
    """A broker reads a new topic's settings from its possibly lagging ZooKeeper server."""

    async def not_needed(_: object) -> None: ...

    patch.setattr(reader, "catch_up", not_needed)


def take_a_lack_of_files_for_a_failed_disk(patch: Patch) -> None:
    """A follower gives up a partition that it temporarily cannot write."""
    patch.setattr(fetcher, "OutOfFiles", ())


def keep_replicas_offline(patch: Patch) -> None:
    """A replica that once had no usable log is considered offline for ever."""

    async def ignore(*_: object) -> None: ...

    patch.setattr(broker_changes, "replicas_usable", ignore)


def obey_former_connections(patch: Patch) -> None:
    """A control request is accepted over any connection."""
    checked = ControlPlane._checked
    patch.setattr(ControlPlane, "_checked", lambda self, request, _: checked(self, request, 0))


def trust_the_image(patch: Patch) -> None:
    """A state changed by another writer is not read again."""

    async def ignore(*_: object) -> None: ...

    patch.setattr(partition_states, "reread", ignore)
    patch.setattr(isr_changes, "reread", ignore)


def take_over_older_states(patch: Patch) -> None:
    """The state from before an election counts, although the controller has decided since."""
    state_of: Any = reader.state_of

    def renewed(before: Any, node: Any) -> Any:
        found = state_of(before, node)
        epoch = max(before.leader_epoch, found.leader_epoch)
        return replace(found, leader_epoch=epoch)

    patch.setattr(partition_states, "state_of", renewed)


def wait_after_any_refusal(patch: Patch) -> None:
    """A leader does not propose an ISR again that the controller found outdated."""
    codes = {ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.UNKNOWN_TOPIC_ID}
    patch.setattr(isr_proposals, "OUTDATED", OUTDATED | codes)


def forget_moves_that_could_not_be_written(patch: Patch) -> None:
    """A leader is not told of a reassignment whose state was refused."""

    async def forgetting(context: Any, topic: Any, where: Any, *args: Any, **kw: Any) -> bool:
        written = await write_state(context, topic, where, *args, **kw)
        if not written:
            context.changed_elsewhere.discard(where)
        return written

    write_state = reassignment._write_state
    patch.setattr(reassignment, "_write_state", forgetting)


def take_a_refused_move_for_complete(patch: Patch) -> None:
    """The image keeps the target of a reassignment that the store has in progress."""
    write = reassignment._write_assignment

    async def refused(context: Any, topic: Any, where: Any, partition: Any) -> None:
        try:
            await write(context, topic, where, partition)
        except StoreError as error:
            raise leader_election.EligibleLeadersNotAvailable(str(error)) from None

    patch.setattr(reassignment, "_write_assignment", refused)


def count_no_records(patch: Patch) -> None:
    """A follower leaves the ISR by time alone."""
    patch.setattr(isr_proposals, "out_of_sync", lambda *args: out_of_sync(*args[:-1]))


def elect_the_first_replica_uncleanly(patch: Patch) -> None:
    """An out-of-sync replica is elected before one in the ISR that may have lost records."""
    elected = leader_election.elected

    def first(partition: Any, live: Any, **kwargs: Any) -> Any:
        outcome = elected(partition, live, **kwargs)
        if not outcome.unclean:
            return outcome
        leader = next(each for each in partition.replicas if each in live)
        return outcome._replace(leader=leader, isr=(leader,))

    patch.setattr(repair, "elected", first)


def begin_without_spare_files(patch: Patch) -> None:
    """A truncation begins that a lack of files stops half way, which counts as a failed disk."""
    patch.setattr(truncation, "check_spare", lambda *_: None)


def ask_once_for_a_deletion(patch: Patch) -> None:
    """A broker that could not delete a log is not asked again."""

    async def forget(_: object) -> None: ...

    patch.setattr(topic_life, "resend_deletions", forget)


def delete_strays(patch: Patch) -> None:
    """A log that belongs to no topic is deleted instead of set aside."""
    patch.setattr(LogStore, "set_aside", lambda self, partition, _: self.delete(partition))


def lead_in_older_epochs_than_the_logs(patch: Patch) -> None:
    async def keep(*_: object) -> None: ...

    patch.setattr(storage, "raise_epochs", keep)


def stop_all_replicas_at_once(patch: Patch) -> None:
    patch.setattr(local, "PARTITIONS_PER_TURN", 1 << 30)


POWER = ("power", "power, elected")
DEPOSED = ("depose", "prefer", "expire")
LEADERS = ("kill", "long pause", "cut from the store", "prefer", "expire", "cut from brokers")


def forget_sessions_with_their_owner(patch: Patch) -> None:
    find = StoreServer._find_sessions

    def ended(self: StoreServer) -> None:
        find(self)
        for session in [*self._names]:
            self._end(session)

    patch.setattr(StoreServer, "_find_sessions", ended)


def ack_before_the_flush(patch: Patch) -> None:
    patch.setattr(PartitionLog, "flush_due", property(lambda _: False))


def acknowledge_copies_before_they_are_flushed(patch: Patch) -> None:
    async def forget(self: fetcher.Fetcher) -> None:
        self._unflushed.clear()

    patch.setattr(fetcher.Fetcher, "_flush", forget)


MUTANTS = [
    Mutant(ack_before_replication, LEADERS, seed=2),
    Mutant(truncate_to_the_high_watermark, LEADERS, seed=9),
    Mutant(skip_epoch_checks, LEADERS, seed=1),
    Mutant(never_truncate, LEADERS, seed=2),
    Mutant(elect_out_of_sync_replicas, ("kill", "kill all", "stop", "long pause"), seed=2),
    Mutant(commit_by_the_proposed_isr, story=stories.a_leader_that_only_clients_reach_dies),
    Mutant(join_the_isr_too_early, ("slow", "kill", "prefer", "expire", "kill all"), seed=1),
    Mutant(accept_isrs_of_former_leaders, LEADERS),
    Mutant(write_in_a_past_controller_epoch, DEPOSED, seed=4),
    Mutant(obey_former_controllers, DEPOSED, seed=28),
    Mutant(obey_before_registration, POWER),
    Mutant(ignore_broker_epochs, POWER),
    Mutant(
        ignore_unclean_shutdowns,
        story=stories.all_are_killed_and_the_one_that_lost_power_comes_first,
    ),
    Mutant(
        miss_changes_while_disconnected,
        story=stories.a_leader_expires_while_the_controller_has_no_store,
    ),
    Mutant(forget_half_begun_reassignments, ("depose",), seed=7),
    Mutant(inherit_settings, story=topic_stories.deleted_while_a_broker_stands_still),
    Mutant(miss_deletions, story=topic_stories.deleted_while_a_broker_stands_still),
    Mutant(keep_strays, story=topic_stories.a_replica_is_moved_while_its_broker_stands_still),
    Mutant(
        look_for_strays_in_full_sets_only,
        story=topic_stories.a_replica_is_moved_and_its_topic_deleted_while_its_broker_stands_still,
    ),
    Mutant(
        keep_logs_of_replaced_topics,
        story=topic_stories.a_topic_is_made_anew_as_a_broker_comes_back_with_its_replica,
    ),
    Mutant(
        serve_the_log_of_a_deleted_topic,
        story=topic_stories.a_replica_is_moved_and_its_topic_made_anew_while_its_broker_is_down,
    ),
    Mutant(
        take_lost_connections_for_refusals, story=stories.the_store_is_lost_as_a_leader_is_written
    ),
    Mutant(
        trust_an_empty_disk,
        story=stories.all_are_killed_and_one_comes_first_with_an_empty_disk,
    ),
    Mutant(
        forget_an_unclean_shutdown,
        story=stories.the_first_to_come_back_lacks_records_and_is_restarted,
    ),
    Mutant(trust_gaps, story=stories.an_offset_flips_on_the_disk_of_a_killed_follower),
    Mutant(trust_gaps, story=stories.a_follower_loses_power_as_a_segment_begins),
    Mutant(
        trust_gaps,
        story=stories.all_are_killed_and_the_one_whose_offset_flipped_comes_first,
    ),
    Mutant(
        read_settings_that_are_behind,
        story=topic_stories.a_topic_is_made_anew_while_a_server_of_the_store_is_behind,
    ),
    Mutant(
        take_a_lack_of_files_for_a_failed_disk,
        story=stories.a_follower_lacks_files_for_a_while,
    ),
    Mutant(
        keep_replicas_offline,
        story=topic_stories.a_topic_is_made_while_a_broker_lacks_files,
    ),
    Mutant(
        begin_without_spare_files,
        story=stories.a_former_leader_lacks_files_as_it_has_to_truncate,
    ),
    Mutant(
        ask_once_for_a_deletion,
        story=topic_stories.a_topic_is_deleted_while_a_broker_lacks_files,
    ),
    Mutant(trust_the_image, story=stories.a_state_is_written_by_hand),
    Mutant(take_over_older_states, story=stories.a_state_from_before_an_election_is_put_back),
    Mutant(
        send_control_requests_once, story=topic_stories.a_topic_is_made_while_a_broker_has_no_store
    ),
    Mutant(
        refuse_a_batch_without_its_first_records,
        story=topic_stories.records_are_deleted_within_a_batch_and_a_replica_is_moved,
    ),
    Mutant(
        expect_settings_of_deleted_topics,
        story=topic_stories.a_setting_is_altered_while_a_deletion_waits,
    ),
    Mutant(fail_by_one_reassignment, story=topic_stories.a_move_is_half_ended),
    Mutant(
        take_a_refused_move_for_complete,
        story=topic_stories.the_second_write_that_ends_a_move_is_refused,
    ),
    Mutant(
        drop_responses_during_a_takeover, story=stories.answers_come_while_a_controller_takes_over
    ),
    Mutant(fail_by_a_malformed_node, story=stories.a_node_is_malformed),
    Mutant(
        elect_uncleanly_during_a_controlled_shutdown,
        story=stories.the_only_replica_in_sync_stops_in_good_order,
    ),
    Mutant(forget_sessions_with_their_owner, story=worker_stories.the_owner_of_the_store_is_killed),
    Mutant(ack_before_the_flush, story=worker_stories.the_machine_loses_power),
    Mutant(wait_for_the_old_controller, story=stories.a_controller_stands_still_with_a_request),
    Mutant(obey_former_connections, story=stories.a_control_request_arrives_late),
    Mutant(obey_former_connections, ("late", "anew"), seed=13),
    Mutant(forget_moves_that_could_not_be_written, ("deny",)),
    Mutant(
        wait_after_any_refusal,
        story=stories.a_controller_is_deposed_before_it_has_said_what_is_newer,
    ),
    Mutant(count_no_records, story=stories.a_follower_falls_behind_by_many_records),
    Mutant(elect_the_first_replica_uncleanly, story=stories.an_unclean_election_is_allowed_at_last),
    Mutant(delete_strays, story=stories.the_store_is_restored_and_lacks_a_topic),
    Mutant(
        lead_in_older_epochs_than_the_logs,
        story=stories.the_store_is_restored_and_has_older_leader_epochs,
    ),
    Mutant(stop_all_replicas_at_once, story=topic_stories.very_many_replicas_are_deleted),
    Mutant(
        acknowledge_copies_before_they_are_flushed,
        story=worker_stories.a_partition_has_moved_as_the_machine_loses_power,
    ),
]
