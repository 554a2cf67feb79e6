"""The offsets of a group, as one of its members reads and commits them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.group_member import GroupMember
from penstock.client.group_settings import GroupSettings, OffsetReset
from penstock.client.listing import EARLIEST, LATEST, by_topic
from penstock.client.member_offsets import (
    check_member_commit,
    committed_to,
    member_commit_request,
    member_offsets_request,
)
from penstock.client.offsets import list_offsets
from penstock.client.route import ToCoordinator
from penstock.errors import ErrorCode, KafkaError
from penstock.types import Offset, TopicPartition, Uuid
from penstock.wire.messages.offset_commit import OffsetCommitResponse
from penstock.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

STALE_EPOCH_S: Final = 0.05
COMMIT_ATTEMPTS: Final = 20
NOT_A_MEMBER: Final = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


class CommitFailed(BrokerRefused):
    """The member's partitions have moved, so their records will be read again by others."""


class NoOffset(KafkaError):
    """A partition has no committed offset, and `offset_reset` is NONE."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class StartingOffsets(NamedTuple):
    """Where a member begins to read its partitions."""

    committed: dict[TopicPartition, Offset]
    """The part of `positions` that the group has committed."""
    positions: dict[TopicPartition, Offset]
    topic_ids: dict[str, Uuid]


class GroupOffsets:
    """Reads and commits offsets at the group's coordinator, in the name of one member."""

    def __init__(
        self, client: Client, group: str, settings: GroupSettings, member: GroupMember
    ) -> None:
        self._client, self._group, self._settings = client, group, settings
        self._member = member
        self.committed: dict[TopicPartition, Offset] = {}
        """The last offsets committed by this member; positions that differ are committed next."""

    async def commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Commit them. Raises `CommitFailed` if their partitions have moved."""
        for _ in range(COMMIT_ATTEMPTS):
            try:
                await self._commit(offsets)
                break
            except BrokerRefused as error:
                if error.code not in NOT_A_MEMBER:
                    raise
                self._member.fenced(error.code)
                if error.code != ErrorCode.STALE_MEMBER_EPOCH:
                    raise _commit_failed(self._group, error) from None
            await asyncio.sleep(STALE_EPOCH_S)  # the next heartbeat brings the new epoch
        else:
            raise _commit_failed(self._group, BrokerRefused(ErrorCode.STALE_MEMBER_EPOCH, "commit"))
        self.committed |= offsets

    async def starting(self, partitions: Sequence[TopicPartition]) -> StartingOffsets:
        """Where to begin reading: the group's committed offsets, or those from `offset_reset`.

        The next commit includes the latter, even if no record was read. Otherwise records that
        arrive before the next member looks up the latest offset would never be read.
        """
        ids = await self._topic_ids(partitions)
        member = self._member.membership.metadata

        async def attempt() -> dict[TopicPartition, Offset]:
            connection = await self._member.coordinator.connection(ToCoordinator(self._group))
            response = await connection.call(
                member_offsets_request(member, partitions, ids),
                OffsetFetchResponse,
                timeout_ms=self._client.request_timeout_ms,
            )
            version = connection.version_of(OffsetFetchRequest)
            return committed_to(member, response, version, ids)

        found = await self._member.coordinator.retrying(attempt)
        missing = [each for each in partitions if each not in found]
        reset = await self.reset(missing) if missing else {}
        return StartingOffsets(found, found | reset, ids)

    async def reset(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Offset]:
        """The offsets that `offset_reset` chooses."""
        policy = self._settings.offset_reset
        if policy is OffsetReset.NONE:
            raise NoOffset(
                f"{partitions[0]} has no valid offset of group {self._group}, "
                "and auto.offset.reset is none"
            )
        at = EARLIEST if policy is OffsetReset.EARLIEST else LATEST
        listed = await list_offsets(
            self._client, dict.fromkeys(partitions, at), isolation=self._settings.isolation
        )
        return {each: found.offset for each, found in listed.items()}

    async def _commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        ids, member = await self._topic_ids(offsets), self._member.membership.metadata
        await self._member.coordinator.call(
            member_commit_request(member, offsets, ids),
            OffsetCommitResponse,
            to=ToCoordinator(self._group),
            check=lambda response: check_member_commit(member, response),
        )

    async def _topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, Uuid]:
        return {
            name: (await self._client.retrying(partial(self._client.topic, name))).id
            for name in by_topic(partitions)
        }


def _commit_failed(group: str, error: BrokerRefused) -> CommitFailed:
    return CommitFailed(
        error.code, f"commit of group {group}", "its partitions have moved to other members"
    )
