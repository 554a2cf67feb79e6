"""The records of `__consumer_offsets`, in Kafka's formats; all versions are read."""

from struct import Struct
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember, ProtocolMetadata
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.records import KINDS, NUMBERS, ConsumerGroupRecord, checked
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.group.share.records import (
    SHARE_KINDS,
    SHARE_NUMBERS,
    ShareGroupRecord,
)
from penstock.coordinator.group.streams.records import (
    STREAMS_KINDS,
    STREAMS_NUMBERS,
    StreamsGroupRecord,
    checked_streams,
)
from penstock.coordinator.storage import RawRecord
from penstock.errors import ProtocolError
from penstock.wire.apis import DATA_MESSAGES
from penstock.wire.codec import M, decode, encode
from penstock.wire.messages.group_metadata_key import GroupMetadataKey
from penstock.wire.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.wire.messages.offset_commit_key import OffsetCommitKey
from penstock.wire.messages.offset_commit_value import OffsetCommitValue
from penstock.wire.schema import Message

_NUMBER = Struct(">h")
_OLD_OFFSET_KEY, _OFFSET_KEY, _GROUP_KEY = range(3)

OFFSET_VERSION = 4
EXPIRING_OFFSET_VERSION = 1
"""The only version with an expiry time, which clients before 2.1 could choose."""
GROUP_VERSION = 3


class OffsetRecord(msgspec.Struct, frozen=True):
    """An offset was committed; None: it was removed."""

    group: str
    topic: str
    partition: int
    committed: CommittedOffset | None


class ClassicGroupRecord(msgspec.Struct, frozen=True):
    """A classic generation became stable, or a group empty; None: the group is gone."""

    group: str
    metadata: GroupMetadataValue | None


GroupShardRecord: TypeAlias = (
    OffsetRecord | ClassicGroupRecord | ConsumerGroupRecord | ShareGroupRecord | StreamsGroupRecord
)


class GroupFormat:
    """A key starts with the record type, a value with the version of its message."""

    def encode(self, record: GroupShardRecord) -> RawRecord:
        match record:
            case OffsetRecord(group, topic, partition, committed):
                key = _numbered(_OFFSET_KEY, OffsetCommitKey(group, topic, partition), 0)
                return RawRecord(key, None if committed is None else _offset_value(committed))
            case ClassicGroupRecord(group, metadata):
                key = _numbered(_GROUP_KEY, GroupMetadataKey(group), 0)
                return RawRecord(
                    key,
                    None if metadata is None else _numbered(GROUP_VERSION, metadata, GROUP_VERSION),
                )
            case ConsumerGroupRecord(key, value):
                return RawRecord(
                    _numbered(NUMBERS[type(key)], key, 0),
                    None if value is None else _numbered(0, value, 0),
                )
            case ShareGroupRecord(share_key, value):
                return RawRecord(
                    _numbered(SHARE_NUMBERS[type(share_key)], share_key, 0),
                    None if value is None else _numbered(0, value, 0),
                )

            case StreamsGroupRecord(streams_key, value):
                return RawRecord(
                    _numbered(STREAMS_NUMBERS[type(streams_key)], streams_key, 0),
                    None if value is None else _numbered(0, value, 0),
                )

    def decode(self, raw: RawRecord) -> GroupShardRecord | None:
        match _number(raw.key):
            case 0 | 1:
                offset_key = decode(OffsetCommitKey, 0, raw.key[_NUMBER.size :])
                value = _value(OffsetCommitValue, raw.value)
                return OffsetRecord(
                    offset_key.group,
                    offset_key.topic,
                    offset_key.partition,
                    None if value is None else _committed(value),
                )
            case 2:
                group = decode(GroupMetadataKey, 0, raw.key[_NUMBER.size :]).group
                return ClassicGroupRecord(group, _value(GroupMetadataValue, raw.value))
            case number if number in KINDS:
                key_type, value_type = KINDS[number]
                key = decode(key_type, 0, raw.key[_NUMBER.size :])
                return checked(ConsumerGroupRecord(key, _value(value_type, raw.value)))
            case number if number in SHARE_KINDS:
                share_type, value_type = SHARE_KINDS[number]
                share_key = decode(share_type, 0, raw.key[_NUMBER.size :])
                return ShareGroupRecord(share_key, _value(value_type, raw.value))
            case number if number in STREAMS_KINDS:
                streams_type, value_type = STREAMS_KINDS[number]
                streams_key = decode(streams_type, 0, raw.key[_NUMBER.size :])
                return checked_streams(
                    StreamsGroupRecord(streams_key, _value(value_type, raw.value))
                )
            case _:
                return None


def _numbered(number: int, message: Message, version: int) -> bytes:
    return encode(message, version, _NUMBER.pack(number))


def _number(data: bytes) -> int:
    if len(data) < _NUMBER.size:
        raise ProtocolError("a group record is too short for its type or version")
    number: int = _NUMBER.unpack_from(data)[0]
    return number


def _value(message: type[M], data: bytes | None) -> M | None:
    if data is None:
        return None
    version = _number(data)
    if not 0 <= version <= DATA_MESSAGES[message.__name__].high:
        raise ProtocolError(f"{message.__name__} v{version} is newer than this broker")
    return decode(message, version, data[_NUMBER.size :])


def _offset_value(committed: CommittedOffset) -> bytes:
    version = OFFSET_VERSION if committed.expire_ms < 0 else EXPIRING_OFFSET_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
        topic_id=committed.topic_id,
    )
    return _numbered(version, value, version)


def _committed(value: OffsetCommitValue) -> CommittedOffset:
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


def metadata_of(group: ClassicGroup) -> GroupMetadataValue:
    """The stored form of a group. Its members are stored only once they have assignments."""
    since_ms = -1 if group.state_since_ms is None else group.state_since_ms
    if group.state not in {ClassicGroupState.STABLE, ClassicGroupState.EMPTY}:
        return GroupMetadataValue(
            protocol=None, leader=None, current_state_timestamp=since_ms, members=[]
        )
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=since_ms,
        members=[
            MemberMetadata(
                member_id=each.id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                rebalance_timeout=each.rebalance_timeout_ms,
                session_timeout=each.session_timeout_ms,
                subscription=each.metadata(group.protocol),
                assignment=each.assignment,
            )
            for each in group.members.values()
        ],
    )


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group as a new coordinator loads it.

    Strategies that members support beside the one in use are lost until they join again.
    """
    since_ms = value.current_state_timestamp
    return ClassicGroup(
        id=group_id,
        state=ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
        members={each.member_id: _member(each, value.protocol) for each in value.members},
        state_since_ms=None if since_ms < 0 else since_ms,
    )


def _member(stored: MemberMetadata, protocol: str | None) -> ClassicGroupMember:
    timeout_ms = stored.rebalance_timeout
    return ClassicGroupMember(
        id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=timeout_ms if timeout_ms > 0 else stored.session_timeout,
        protocols=(ProtocolMetadata(protocol or "", stored.subscription),),
        assignment=stored.assignment,
    )
