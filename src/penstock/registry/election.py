"""Elects the instance that writes, with the group protocol, as Confluent's registries do. Both can
be members of one group.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.route import ToCoordinator
from penstock.errors import ErrorCode, KafkaError
from penstock.http.client import authority
from penstock.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from penstock.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from penstock.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
SESSION_MS: Final = 6_000
REBALANCE_MS: Final = 10_000
HEARTBEAT_S: Final = 2.0
RETRY_S: Final = 0.5
DUPLICATE_URLS: Final = 1
AGAIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED})
FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})

logger = logging.getLogger(__name__)


class Identity(msgspec.Struct, frozen=True):
    """An instance and its address; the JSON field names are Confluent's."""

    host: str
    port: int
    eligible: bool = msgspec.field(default=True, name="master_eligibility")
    scheme: str = "http"
    version: int = 1

    @property
    def url(self) -> str:
        return f"{self.scheme}://{authority(self.host, self.port)}"


class Assignment(msgspec.Struct, frozen=True):
    """The assignment of each member: the elected leader, or none if no instance is eligible."""

    error: int = 0
    leader: str | None = msgspec.field(default=None, name="master")
    identity: Identity | None = msgspec.field(default=None, name="master_identity")
    version: int = 1


def elected(members: Mapping[str, Identity | None]) -> Assignment:
    """The leader of these members. Deterministic: any member computes the same. Pure."""
    urls = [each.url for each in members.values() if each is not None]
    if len(set(urls)) < len(urls):
        return Assignment(error=DUPLICATE_URLS)
    for member in sorted(members):
        identity = members[member]
        if identity is not None and identity.eligible:
            return Assignment(leader=member, identity=identity)
    return Assignment()


def identity_of(metadata: bytes) -> Identity | None:
    """The identity in a member's metadata. None: the member is not a registry, and is ignored."""
    try:
        return msgspec.json.decode(metadata, type=Identity)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Election:
    """A membership in the group. `run` stays a member until cancelled, then leaves."""

    def __init__(
        self,
        client: Client,
        group: str,
        own: Identity,
        on_leader: Callable[[Identity | None], Awaitable[None]],
    ) -> None:
        # a join blocks its connection at the broker, so it gets a client of its own
        self._client = client.twin()
        self._group, self._own, self._on_leader = group, own, on_leader
        self._member, self._generation = "", -1
        self._again = asyncio.Event()

    def rejoin(self) -> None:
        """Start a new election, because this instance found that it does not lead any more."""
        self._again.set()

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self._take_part()
                except KafkaError as error:
                    if error.code in FORGOTTEN:
                        self._member = ""
                    elif error.code not in AGAIN:
                        logger.warning("group %s: %s", self._group, error)
                        self._client.forget()
                        await asyncio.sleep(RETRY_S)
        finally:
            try:
                async with asyncio.timeout(RETRY_S):
                    await self._leave()
            except (KafkaError, TimeoutError):
                pass  # the session will time out
            await self._client.close()

    async def _take_part(self) -> None:
        """One generation: join, learn the leader, and send heartbeats until the group changes."""
        joined = await self._joined()
        self._again.clear()
        assignment = await self._synced(joined)
        if assignment.error == DUPLICATE_URLS:
            logger.error(
                "%s is the address of several instances in group %s: give each its own by "
                "--advertised",
                self._own.url,
                self._group,
            )
        await self._on_leader(assignment.identity)
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._again.wait()
                return
            except TimeoutError:
                await self._heartbeat()

    async def _joined(self) -> JoinGroupResponse:
        protocol = JoinGroupRequestProtocol(name=PROTOCOL, metadata=msgspec.json.encode(self._own))
        connection = await self._client.connection(ToCoordinator(self._group))
        response = await connection.call(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member,
                protocol_type=PROTOCOL_TYPE,
                protocols=[protocol],
            ),
            JoinGroupResponse,
            timeout_ms=2 * REBALANCE_MS,
        )
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member = response.member_id
        check(response.error_code, "join")
        self._member, self._generation = response.member_id, response.generation_id
        return response

    async def _synced(self, joined: JoinGroupResponse) -> Assignment:
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == self._member:
            members = {each.member_id: identity_of(each.metadata) for each in joined.members}
            assignment = msgspec.json.encode(elected(members))
            assignments = [
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each in members
            ]
        connection = await self._client.connection(ToCoordinator(self._group))
        response = await connection.call(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=assignments,
            ),
            SyncGroupResponse,
            timeout_ms=2 * REBALANCE_MS,
        )
        check(response.error_code, "sync")
        try:
            return msgspec.json.decode(response.assignment, type=Assignment)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.error(
                "group %s: a member that is not a registry leads it: %s", self._group, error
            )
            return Assignment()

    async def _heartbeat(self) -> None:
        connection = await self._client.connection(ToCoordinator(self._group))
        response = await connection.call(
            HeartbeatRequest(
                group_id=self._group, generation_id=self._generation, member_id=self._member
            ),
            HeartbeatResponse,
            timeout_ms=SESSION_MS,
        )
        check(response.error_code, "heartbeat")

    async def _leave(self) -> None:
        if not self._member:
            return
        connection = await self._client.connection(ToCoordinator(self._group))
        identity = MemberIdentity(member_id=self._member)
        await connection.call(
            LeaveGroupRequest(group_id=self._group, member_id=self._member, members=[identity]),
            LeaveGroupResponse,
            timeout_ms=SESSION_MS,
        )
