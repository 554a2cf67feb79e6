"""Changes of groups: reset offsets, remove a member, delete."""

from urllib.parse import quote

from msgspec import Struct, field

from penstock.client.group_reset import (
    Target,
    commit,
    in_scope,
    offsets_before,
    offsets_of,
    state_with_members,
)
from penstock.client.groups import delete_group, describe_group
from penstock.client.listing import LATEST
from penstock.client.offsets import list_offsets
from penstock.client.partition_scope import parse_scope
from penstock.client.position import parse_position
from penstock.client.remove_member import remove_member
from penstock.clock import SystemClock
from penstock.console.change import Change, Doing, Done, Int64
from penstock.console.changes.topics import check_confirmed
from penstock.errors import ConfigError
from penstock.types import TopicPartition


class GroupReset(Struct, frozen=True, kw_only=True):
    """The target is one of `to` (beginning, end, current, N, +N, -N, -2h, @TIME), `shift` and
    `offsets` (by TOPIC:PARTITION). `topics` are TOPIC or TOPIC:0,2; by default, all topics with
    committed offsets. Without `execute` nothing changes.
    """

    group: str
    to: str | None = None
    shift: Int64 | None = None
    offsets: dict[str, Int64] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)
    execute: bool = False


class OffsetMove(Struct, frozen=True):
    """A committed offset before and after the reset; `wanted` differs from `after` if the partition
    does not have that offset.
    """

    topic: str
    partition: int
    before: int | None
    after: int
    wanted: int
    lag: int


class GroupResetResult(Struct, frozen=True):
    """The new offsets; `warning` says why `execute` would fail now."""

    group: str
    executed: bool
    moves: list[OffsetMove]
    warning: str | None


async def reset(doing: Doing, wanted: GroupReset) -> GroupResetResult:
    client, group = doing.client, wanted.group
    target = target_of(wanted)
    before = await offsets_before(client, group)
    partitions = await in_scope(client, group, wanted.topics, target, before)
    found = await offsets_of(client, partitions, target, before)
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    warning = None
    if wanted.execute:
        await commit(client, group, {tp: each.offset for tp, each in found.items()})
    elif (state := await state_with_members(client, group)) is not None:
        warning = f"the group is {state}: stop its consumers first, or the reset will fail"
    moves = [
        OffsetMove(
            *tp,
            before.get(tp),
            found[tp].offset,
            found[tp].wanted,
            ends[tp].offset - found[tp].offset,
        )
        for tp in partitions
    ]
    return GroupResetResult(group, wanted.execute, moves, warning)


def target_of(wanted: GroupReset) -> Target:
    given = (wanted.to is not None, wanted.shift is not None, bool(wanted.offsets))
    if sum(given) != 1:
        raise ConfigError("give one of to, shift, offsets")
    if wanted.shift is not None:
        return Target(shift=wanted.shift)
    if wanted.to == "current":
        return Target(shift=0)
    if wanted.to is not None:
        try:
            return Target(parse_position(wanted.to, SystemClock().now_ms()))
        except ValueError as error:
            raise ConfigError(str(error)) from None
    offsets = {}
    for name, offset in wanted.offsets.items():
        scope = parse_scope([name])
        (topic,), (indexes,) = scope, scope.values()
        if indexes is None or len(indexes) != 1:
            raise ConfigError(f"offsets: {name} must be TOPIC:PARTITION")
        offsets[TopicPartition(topic, indexes[0])] = offset
    return Target(offsets=offsets)


class GroupDelete(Struct, frozen=True, kw_only=True):
    """`confirm` repeats the name of the group."""

    group: str
    confirm: str


async def delete(doing: Doing, wanted: GroupDelete) -> Done:
    check_confirmed(wanted.group, wanted.confirm)
    await delete_group(doing.client, wanted.group)
    return Done(f"deleted group {wanted.group}", "/groups")


class MemberRemove(Struct, frozen=True, kw_only=True):
    """A member, by its id."""

    group: str
    member: str


async def remove(doing: Doing, wanted: MemberRemove) -> Done:
    found = await describe_group(doing.client, wanted.group)
    instances = [each.instance_id for each in found.members if each.id == wanted.member]
    if not instances:
        raise ConfigError(f"group {wanted.group} has no member {wanted.member}")
    reason = f"removed by {doing.user} in the console"
    await remove_member(doing.client, wanted.group, wanted.member, instances[0], reason)
    page = f"/group?group={quote(wanted.group, safe='')}"
    return Done(f"removed {wanted.member} from {wanted.group}", page)


GROUPS = (
    Change(
        "group.reset",
        "POST",
        "/api/v1/group/reset",
        "Reset the offsets of a group without members; shows the new ones without execute.",
        GroupReset,
        reset,
        GroupResetResult,
        "reset.html",
    ),
    Change(
        "group.delete",
        "POST",
        "/api/v1/group/delete",
        "Delete a group without members, with its offsets.",
        GroupDelete,
        delete,
    ),
    Change(
        "group.remove-member",
        "POST",
        "/api/v1/group/remove-member",
        "Remove a member of a classic group; the group rebalances.",
        MemberRemove,
        remove,
    ),
)
