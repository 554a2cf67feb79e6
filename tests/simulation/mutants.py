"""Rules broken on purpose: each must show as a broken promise, or nothing guards the rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.broker.peers import received
from penstock.broker.peers.orders import Orders
from penstock.controller import election, isr_changes, reassignment, repair
from penstock.controller.candidacy import Candidacy
from penstock.controller.office import Office
from penstock.controller.term import Term
from penstock.metadata.store import SessionState
from penstock.replication import partition as partition_module
from penstock.replication.isr import Isr
from penstock.replication.partition import Partition
from penstock.replication.proposal import InSyncReplica

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutant:
    """A broken rule, and the faults among which it shows soonest."""

    apply: Callable[[Patch], None]
    faults: tuple[str, ...] = ()


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
    patch.setattr(Partition, "check_leader", lambda *_: None)
    patch.setattr(Partition, "diverging", lambda *_: None)


def never_cut(patch: Patch) -> None:
    patch.setattr(Partition, "diverging", lambda *_: None)


def elect_from_out_of_sync(patch: Patch) -> None:
    elected = election.elected

    def anyone(partition: Any, live: Any, **kwargs: Any) -> Any:
        return elected(partition, live, **(kwargs | {"unclean": True}))

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

    def judged(office: Any, _: object, wanted: Any) -> Any:
        partition = office.image.partition(wanted.where)
        isr = tuple(each.broker for each in wanted.isr)
        if partition is None or set(isr) == set(partition.isr):
            return None
        return replace(partition, isr=isr)

    patch.setattr(isr_changes, "judged", judged)
    patch.setattr(isr_changes, "check_broker_epoch", lambda *_: None)


def write_out_of_office(patch: Patch) -> None:
    """A controller that was succeeded writes on."""

    async def write_each(self: Any, multis: Any) -> Any:
        return await self._store.multi_many([list(each) for each in multis])

    patch.setattr(Term, "write_each", write_each)


def obey_outrun_controllers(patch: Patch) -> None:
    check = received.check_epochs

    def broker_epoch_only(request: Any, image: Any, broker_epoch: int) -> None:
        check(replace(request, controller_epoch=2**30), image, broker_epoch)

    patch.setattr(received, "check_epochs", broker_epoch_only)


def obey_before_registration(patch: Patch) -> None:
    """Orders for a broker's former life are carried out by the next one."""
    init = Orders.__init__

    def begin(self: Orders, *args: Any) -> None:
        init(self, *args)
        self._is_registered.set()

    patch.setattr(Orders, "__init__", begin)


def forget_lives(patch: Patch) -> None:
    """Nobody looks at broker epochs: neither leaders, nor the controller, nor who is told."""
    patch.setattr(received, "UNKNOWN_EPOCH", -(2**62))
    patch.setattr(Partition, "check_follower", lambda *_: None)
    patch.setattr(Partition, "_member", lambda _self, broker: InSyncReplica(broker))
    obey_before_registration(patch)
    check = received.check_epochs
    patch.setattr(
        received, "check_epochs", lambda request, image, _: check(request, image, -(2**62))
    )


def trust_whoever_lost_power(patch: Patch) -> None:
    """Who is registered again is taken for who was in sync before."""
    patch.setattr(Office, "doubtful", property(lambda _: []))


def miss_what_happened_meanwhile(patch: Patch) -> None:
    """A controller that was away from the store for a moment goes on with what it knew."""
    patch.setattr(
        Candidacy,
        "_session_changed",
        lambda self, state: (
            self._controller.resign() if state is SessionState.EXPIRED else None,
            self._wake.set(),
        ),
    )


def forget_what_was_begun(patch: Patch) -> None:
    """A new controller does not tell leaders of moves that were only half begun."""

    async def resume(office: Any) -> None:
        await reassignment.progress(office, reassignment.moving(office))

    patch.setattr(reassignment, "resume", resume)


POWER = ("power", "power, elected")
DEPOSED = ("depose", "prefer", "expire")
LEADERS = ("kill", "long pause", "cut from the store", "prefer", "expire", "cut from brokers")

MUTANTS = [
    Mutant(ack_before_replication, LEADERS),
    Mutant(cut_by_high_watermark, LEADERS),
    Mutant(skip_the_epoch_check, LEADERS),
    Mutant(never_cut, LEADERS),
    Mutant(elect_from_out_of_sync, ("kill", "kill all", "stop", "long pause")),
    Mutant(count_the_proposed, LEADERS),
    Mutant(join_whenever, ("slow", "kill", "prefer", "expire", "kill all")),
    Mutant(believe_deposed_leaders, LEADERS),
    Mutant(write_out_of_office, DEPOSED),
    Mutant(obey_outrun_controllers, DEPOSED),
    Mutant(obey_before_registration, POWER),
    Mutant(forget_lives, POWER),
    Mutant(trust_whoever_lost_power, POWER),
    Mutant(
        miss_what_happened_meanwhile,
        ("cut from the store", "kill", "store connection", "directory"),
    ),
    Mutant(forget_what_was_begun, ("depose",)),
]
