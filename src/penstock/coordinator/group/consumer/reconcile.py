"""How a member gets from what it has to what the target gives it: revoke first, then assign."""

from collections.abc import Callable

import msgspec

from penstock.coordinator.group.consumer.member import (
    NOTHING,
    ConsumerMember,
    MemberState,
    Share,
)


def reconciled(
    member: ConsumerMember,
    target: Share,
    target_epoch: int,
    owned: Share | None,
    taken: Callable[[], Share],
) -> ConsumerMember:
    """The member's next step. `owned` is what it says it still has, if it says so; `taken` is
    what all others have or have not given up yet.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return member
        case MemberState.UNREVOKED_PARTITIONS if owned is None or owned & member.revoking:
            return member
    keeps = member.assigned & target
    gives_up = member.assigned - target
    if gives_up and (owned is None or owned & gives_up):
        return msgspec.structs.replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=keeps,
            revoking=gives_up,
        )
    lacks = target - keeps
    free = lacks - taken() if lacks else NOTHING
    return msgspec.structs.replace(
        member,
        state=MemberState.STABLE if free == lacks else MemberState.UNRELEASED_PARTITIONS,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=keeps | free,
        revoking=NOTHING,
    )
