"""Moves a member from its present to its target assignment: it revokes first, then gets more."""

from collections.abc import Callable

import msgspec

from penstock.coordinator.group.consumer.member import (
    NO_PARTITIONS,
    Assignment,
    ConsumerGroupMember,
    MemberState,
)


def reconciled(
    member: ConsumerGroupMember,
    target: Assignment,
    target_epoch: int,
    owned: Assignment | None,
    held_by_others: Callable[[], Assignment],
) -> ConsumerGroupMember:
    """The member after its next step.

    `owned` are the partitions that the member reports, None if it reports nothing.
    `held_by_others` returns the partitions that other members have or have not revoked yet.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return member
        case MemberState.UNREVOKED_PARTITIONS if owned is None or owned & member.revoking:
            return member
    retained = member.assigned & target
    revokes = member.assigned - target
    if revokes and (owned is None or owned & revokes):
        return msgspec.structs.replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=retained,
            revoking=revokes,
        )
    missing = target - retained
    free = missing - held_by_others() if missing else NO_PARTITIONS
    return msgspec.structs.replace(
        member,
        state=MemberState.STABLE if free == missing else MemberState.UNRELEASED_PARTITIONS,
        epoch=target_epoch,
        previous_epoch=member.previous_epoch if member.epoch == target_epoch else member.epoch,
        assigned=retained | free,
        revoking=NO_PARTITIONS,
    )
