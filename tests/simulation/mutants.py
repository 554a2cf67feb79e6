"""Rules broken on purpose: each must show as a broken promise, or nothing guards the rule."""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.broker.peers import control_changes, control_plane, controller_channel
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.peers.control_plane import ControlPlane
from penstock.broker.peers.topic_watch import TopicWatch
from penstock.broker.startup import decision
from penstock.controller import (
    isr_changes,
    leader_election,
    partition_states,
    reassignment,
    repair,
)
from penstock.controller.context import ControllerContext
from penstock.controller.controller import Controller as ControllerItself
from penstock.controller.controller_election import ControllerElection
from penstock.controller.epoch import ControllerEpoch
from penstock.errors import ErrorCode
from penstock.metadata import reader
from penstock.metadata.errors import StoreError
from penstock.metadata.records import decode
from penstock.metadata.store import SessionState
from penstock.replication import fencing
from penstock.replication import partition as partition_module
from penstock.replication.isr import Isr
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.replication.proposal import InSyncReplica
from simulation import stories
from simulation.stories import Story

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """A broken rule, and the faults among which it shows soonest."""

    apply: Callable[[Patch], None]
    faults: tuple[str, ...] = ()
    story: Story | None = None
    """What shows it at once, where seeds would take long."""
    seed: int = 0
    """Tried first: it has shown the rule broken soonest. After other changes another one may."""


def ack_before_replication(patch: Patch) -> None:
    patch.setattr(
        Partition, "advance", lambda self: self.log.advance_high_watermark(self.log.end_offset)
    )


def cut_by_high_watermark(patch: Patch) -> None:
    """What Kafka did before KIP-101."""
    follow = Partition.follow

    def following(self: Partition, *args: Any, **kwargs: Any) -> bool:
        self.log.truncate_to(self.log.high_watermark)
        return follow(self, *args, **kwargs)

    patch.setattr(Partition, "follow", following)


def skip_the_epoch_check(patch: Patch) -> None:
    """Whoever was deposed serves on, and nobody looks whether logs have parted."""
    patch.setattr(fencing, "check_leader", lambda *_: None)
    patch.setattr(fencing, "diverging_epoch", lambda *_: None)


def never_cut(patch: Patch) -> None:
    patch.setattr(fencing, "diverging_epoch", lambda *_: None)


def elect_from_out_of_sync(patch: Patch) -> None:
    elected = leader_election.elected

    def anyone(partition: Any, live: Any, **kwargs: Any) -> Any:
        return elected(partition, live, **(kwargs | {"allow_unclean": True}))

    patch.setattr(repair, "elected", anyone)


def count_the_proposed(patch: Patch) -> None:
    """Who is to leave counts no more, before the controller has agreed."""
    patch.setattr(Isr, "maximal", property(lambda self: self.proposed))


def join_whenever(patch: Patch) -> None:
    def joins(isr: Isr, replica: int, *_: object) -> bool:
        return isr.change is None and replica not in isr.committed

    patch.setattr(partition_module, "may_join", joins)


def believe_deposed_leaders(patch: Patch) -> None:
    """AlterPartition of whoever says that it leads."""

    def altered(context: Any, _: object, requested: Any) -> Any:
        partition = context.image.partition(requested.topic_partition)
        isr = tuple(each.broker for each in requested.isr)
        if partition is None or set(isr) == set(partition.isr):
            return None
        return replace(partition, isr=isr)

    patch.setattr(isr_changes, "altered_partition", altered)
    patch.setattr(isr_changes, "check_broker_epoch", lambda *_: None)


def write_out_of_office(patch: Patch) -> None:
    """A controller that was succeeded writes on."""

    async def write_each(self: Any, multis: Any) -> Any:
        return await self._store.multi_many([list(each) for each in multis])

    patch.setattr(ControllerEpoch, "write_each", write_each)


def obey_outrun_controllers(patch: Patch) -> None:
    check = control_changes.check_epochs

    def broker_epoch_only(request: Any, image: Any, broker_epoch: int) -> None:
        check(replace(request, controller_epoch=2**30), image, broker_epoch)

    patch.setattr(control_changes, "check_epochs", broker_epoch_only)


def obey_before_registration(patch: Patch) -> None:
    """Orders for a broker's former life are carried out by the next one."""
    init = ControlPlane.__init__

    def begin(self: ControlPlane, *args: Any) -> None:
        init(self, *args)
        self._is_registered.set()

    patch.setattr(ControlPlane, "__init__", begin)


def forget_lives(patch: Patch) -> None:
    """Nobody looks at broker epochs: neither leaders, nor the controller, nor who is told."""
    patch.setattr(control_changes, "UNKNOWN_EPOCH", -(2**62))
    patch.setattr(fencing, "check_follower", lambda *_: None)
    patch.setattr(Partition, "_member", lambda _self, broker: InSyncReplica(broker))
    obey_before_registration(patch)
    check = control_changes.check_epochs
    patch.setattr(
        control_changes, "check_epochs", lambda request, image, _: check(request, image, -(2**62))
    )


def trust_whoever_lost_power(patch: Patch) -> None:
    """Who is registered again is taken for who was in sync before."""
    patch.setattr(ControllerContext, "unclean_shutdown_brokers", property(lambda _: []))


def miss_what_happened_meanwhile(patch: Patch) -> None:
    """A controller that was away from the store for a moment goes on with what it knew."""
    patch.setattr(
        ControllerElection,
        "_session_changed",
        lambda self, state: (
            self._controller.resign() if state is SessionState.EXPIRED else None,
            self._wake.set(),
        ),
    )


def forget_what_was_begun(patch: Patch) -> None:
    """A new controller does not tell leaders of moves that were only half begun."""

    async def resume(context: Any) -> None:
        await reassignment.progress(context, reassignment.in_progress(context.image))

    patch.setattr(reassignment, "resume", resume)


def inherit_settings(patch: Patch) -> None:
    """Settings are read for names that have none yet, whichever topic has the name now."""

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


def swallow_lost_connections(patch: Patch) -> None:
    """What nobody knows is taken for a refusal."""

    async def send(self: Any, multis: Any) -> Any:
        answers = await self._store.multi_many([(self._check, *each) for each in multis])
        return [each if isinstance(each, StoreError) else each[1:] for each in answers]

    trust_the_image(patch)
    patch.setattr(ControllerEpoch, "_send", send)


def say_orders_once(patch: Patch) -> None:
    """Whatever a broker answers, it is told no more."""
    patch.setattr(controller_channel, "STALE", frozenset(ErrorCode))


def fail_by_one_move(patch: Patch) -> None:
    """A move that cannot end stops whatever looks at moves."""

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


def drop_answers_while_taking_over(patch: Patch) -> None:
    """What brokers say before the office is held is not heard."""

    async def start(self: Any) -> None:
        await self._start()
        self.check_for_changes()

    patch.setattr(ControllerItself, "start", start)


def miss_deletions(patch: Patch) -> None:
    """Topics that went while nobody told a broker of it stay in its image."""
    patch.setattr(TopicWatch, "check", lambda _: None)


def keep_what_is_not_assigned(patch: Patch) -> None:
    """Orders of a controller that has told of everything stop nothing."""
    patch.setattr(control_plane, "strays", lambda *_: {})


def serve_the_log_of_a_deleted_topic(patch: Patch) -> None:
    """A log belongs to whichever topic has its name."""
    keep_what_is_not_assigned(patch)
    patch.setattr(Partitions, "_why_stray", lambda *_, **__: None)


def stumble_over_malformed_nodes(patch: Patch) -> None:
    patch.setattr(reader, "decode_or_skip", decode)


def succeed_who_leaves_uncleanly(patch: Patch) -> None:
    """A broker that is about to stop counts as gone."""
    original = ControllerContext.live_or_shutting_down_replicas

    def without_stopping(self: ControllerContext, topic_partition: Any, replicas: Any) -> Any:
        live = original(self, topic_partition, replicas)
        return [each for each in live if each not in self.shutting_down]

    patch.setattr(ControllerContext, "live_or_shutting_down_replicas", without_stopping)


def wait_for_the_old_controller(patch: Patch) -> None:
    patch.setattr(PeerConnection, "drop_if_moved", lambda _: None)


def trust_an_empty_disk(patch: Patch) -> None:
    """A broker that was in sync leads with whatever it finds."""
    patch.setattr(decision, "lost_replicas", lambda *_: [])


def trust_the_image(patch: Patch) -> None:
    """A state that somebody else wrote is not read again."""

    async def ignore(*_: object) -> None: ...

    patch.setattr(partition_states, "reread", ignore)
    patch.setattr(isr_changes, "reread", ignore)


POWER = ("power", "power, elected")
DEPOSED = ("depose", "prefer", "expire")
LEADERS = ("kill", "long pause", "cut from the store", "prefer", "expire", "cut from brokers")

MUTANTS = [
    Mutant(ack_before_replication, LEADERS, seed=2),
    Mutant(cut_by_high_watermark, LEADERS, seed=2),
    Mutant(skip_the_epoch_check, LEADERS, seed=1),
    Mutant(never_cut, LEADERS, seed=2),
    Mutant(elect_from_out_of_sync, ("kill", "kill all", "stop", "long pause")),
    Mutant(count_the_proposed, LEADERS, seed=2),
    Mutant(join_whenever, ("slow", "kill", "prefer", "expire", "kill all")),
    Mutant(believe_deposed_leaders, LEADERS, seed=2),
    Mutant(write_out_of_office, DEPOSED, seed=1),
    Mutant(obey_outrun_controllers, DEPOSED, seed=14),
    Mutant(obey_before_registration, POWER, seed=3),
    Mutant(forget_lives, POWER, seed=3),
    Mutant(trust_whoever_lost_power, POWER, seed=2),
    Mutant(
        miss_what_happened_meanwhile,
        ("cut from the store", "long pause", "kill", "store connection", "directory"),
        seed=32,
    ),
    Mutant(forget_what_was_begun, ("depose",), seed=9),
    Mutant(inherit_settings, story=stories.deleted_while_a_broker_stands_still),
    Mutant(miss_deletions, story=stories.deleted_while_a_broker_stands_still),
    Mutant(
        keep_what_is_not_assigned, story=stories.a_replica_is_moved_while_its_broker_stands_still
    ),
    Mutant(
        serve_the_log_of_a_deleted_topic,
        story=stories.a_replica_is_moved_and_its_topic_made_anew_while_its_broker_is_down,
    ),
    Mutant(swallow_lost_connections, story=stories.the_store_is_lost_as_a_leader_is_written),
    Mutant(
        trust_an_empty_disk,
        story=stories.all_are_killed_and_one_comes_first_with_an_empty_disk,
    ),
    Mutant(trust_the_image, story=stories.a_state_is_written_by_hand),
    Mutant(say_orders_once, story=stories.a_topic_is_made_while_a_broker_has_no_store),
    Mutant(fail_by_one_move, story=stories.a_move_is_half_ended),
    Mutant(
        drop_answers_while_taking_over, story=stories.answers_come_while_a_controller_takes_over
    ),
    Mutant(stumble_over_malformed_nodes, story=stories.a_node_is_malformed),
    Mutant(
        succeed_who_leaves_uncleanly, story=stories.the_only_replica_in_sync_stops_in_good_order
    ),
    Mutant(wait_for_the_old_controller, story=stories.a_controller_stands_still_with_a_request),
]
