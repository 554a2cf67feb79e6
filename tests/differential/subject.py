"""A broker under comparison: its identity, and how a case is played to it."""

import time
from dataclasses import replace
from typing import Any

from differential.case import API_OF, At, Case, Eventually, Raw, Step, highest
from differential.flat import Flat, flat
from differential.link import CORRELATION_ID, Link
from differential.symbols import Identity, Symbols
from penstock.errors import ErrorCode, ProtocolError
from penstock.wire.apis import APIS, Api
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decoder
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.create_topics import CreateTopicsRequest
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.describe_cluster import DescribeClusterRequest
from penstock.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from penstock.wire.messages.describe_transactions import DescribeTransactionsRequest
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from penstock.wire.schema import Message

CLIENT_ID = "differential"
PATIENCE_S = 10
HEARTBEATS = (ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest)


class Subject:
    """A broker at a port of this machine."""

    def __init__(self, port: int) -> None:
        link = Link(port)
        cluster = _answer(link, DescribeClusterRequest())
        log_dirs = _answer(link, DescribeLogDirsRequest(topics=[]))
        self.identity = Identity(port, cluster.cluster_id, log_dirs.results[0].log_dir)
        # Kafka fetches its first block of producer ids when the first one is asked for.
        producer = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        given = Eventually(producer, lambda answer: answer.error_code == ErrorCode.NONE)
        _wait(link, Symbols("", self.identity), given)
        # Likewise it creates the topic of groups when the first coordinator is looked up.
        names = [f"group-{number}" for number in range(20)]
        found = FindCoordinatorRequest(coordinator_keys=names)
        _wait(link, Symbols("", self.identity), Eventually(found, _are_coordinated))
        groups = DescribeGroupsRequest(groups=names)
        _wait(link, Symbols("", self.identity), Eventually(groups, _are_loaded))
        found = FindCoordinatorRequest(key_type=1, coordinator_keys=names)
        _wait(link, Symbols("", self.identity), Eventually(found, _are_coordinated))
        many = [f"transaction-{number}" for number in range(500)]
        transactions = DescribeTransactionsRequest(transactional_ids=many)
        _wait(link, Symbols("", self.identity), Eventually(transactions, _are_unknown))
        link.close()

    def play(self, case: Case, version: int) -> list[Flat]:
        """Each request's outcome, in order."""
        link = Link(self.identity.port)
        symbols = Symbols(case.prefix(version), self.identity)
        try:
            if case.topics:
                _create(link, symbols, case)
            return [_outcome(link, symbols, case, version, step) for step in case.requests]
        finally:
            link.close()


def _outcome(link: Link, symbols: Symbols, case: Case, version: int, step: Step) -> Flat:
    if isinstance(step, Raw):
        frames, connection = link.ask(step.data, ends=step.ends)
        if step.answered_as is None:
            return {"frames": str(len(frames)), "connection": connection}
        name, read_as = step.answered_as
        api = next(api for api in APIS.values() if api.name == name)
        return _read(frames, connection, symbols, case, api, read_as)
    if isinstance(step, Eventually):
        _wait(link, symbols, step)
        return {}
    request = step.request if isinstance(step, At) else step
    api = API_OF[type(request)]
    at = version if api is case.api else highest(api)
    if isinstance(step, At):
        at = step.version
    frame = request_frame(api, at, CORRELATION_ID, CLIENT_ID, symbols.concrete(request))
    frames, connection = link.ask(bytes(frame))
    return _read(frames, connection, symbols, case, api, at)


def _read(
    frames: list[bytes], connection: str, symbols: Symbols, case: Case, api: Api, version: int
) -> Flat:
    outcome = {"frames": str(len(frames)), "connection": connection}
    for frame in frames:
        try:
            correlation_id, at = read_response_header(frame, api, version)
            body, end = decoder(api.response, version)(frame, at)
        except ProtocolError as error:
            return outcome | {"undecodable": f"{error}: {frame.hex()}"}
        outcome["correlation_id"] = "ours" if correlation_id == CORRELATION_ID else "another"
        outcome["bytes_behind"] = str(len(frame) - end)
        more = case.rules.get(api.response.__name__, {})
        outcome |= flat(symbols.symbolic(body), version, more)
    return outcome


def _answer(link: Link, request: Message) -> Any:
    """The decoded answer to a request at its highest version."""
    api = API_OF[type(request)]
    frame = request_frame(api, highest(api), CORRELATION_ID, CLIENT_ID, request)
    (answer,), _ = link.ask(bytes(frame))
    _, at = read_response_header(answer, api, highest(api))
    return decoder(api.response, highest(api))(answer, at)[0]


def _wait(link: Link, symbols: Symbols, step: Eventually) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not step.wanted(symbols.symbolic(_answer(link, symbols.concrete(step.request)))):
        assert time.monotonic() < deadline_s, f"in vain: {step.request}"
        time.sleep(0.005)


def _create(link: Link, symbols: Symbols, case: Case) -> None:
    """Create the case's topics, and wait until they can be read: brokers learn of them later."""
    created = _answer(link, symbols.concrete(CreateTopicsRequest(topics=list(case.topics))))
    assert not any(topic.error_code for topic in created.topics), created
    names = [topic.name for topic in case.topics]
    metadata = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    _wait(link, symbols, Eventually(metadata, _has_leaders))
    counts = {
        topic.name: max(topic.num_partitions, len(topic.assignments), 1) for topic in case.topics
    }
    offsets = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(partition_index=partition, timestamp=-1)
                    for partition in range(counts[name])
                ],
            )
            for name in names
        ],
        replica_id=-1,
    )
    _wait(link, symbols, Eventually(offsets, _has_offsets))
    if any(isinstance(_request(step), HEARTBEATS) for step in case.requests):
        _tell_coordinator(link, symbols, names)


def _tell_coordinator(link: Link, symbols: Symbols, topics: list[str]) -> None:
    """Wait until the coordinator of the case's group knows the topics, which is later still: a
    temporary member of that group gets partitions. Afterwards the group is as if it had never
    existed.
    """
    apart = replace(symbols, members=[])
    join = ConsumerGroupHeartbeatRequest(
        group_id="~g",
        member_id="~first",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=topics,
        topic_partitions=[],
    )
    _wait(link, apart, Eventually(join, _has_partitions))
    leave = ConsumerGroupHeartbeatRequest(group_id="~g", member_id="~first", member_epoch=-1)
    for request in (leave, DeleteGroupsRequest(["~g"])):
        _answer(link, apart.concrete(request))


def _request(step: Step) -> object:
    return step.request if isinstance(step, At | Eventually) else step


def _has_partitions(reported: Any) -> bool:
    return bool(reported.assignment.topic_partitions) if reported.assignment is not None else False


def _are_coordinated(found: Any) -> bool:
    return all(each.error_code == ErrorCode.NONE for each in found.coordinators)


def _are_loaded(described: Any) -> bool:
    return all(each.error_code == ErrorCode.GROUP_ID_NOT_FOUND for each in described.groups)


def _are_unknown(described: Any) -> bool:
    return all(
        each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        for each in described.transaction_states
    )


def _has_leaders(metadata: Any) -> bool:
    return all(
        topic.error_code == ErrorCode.NONE
        and topic.partitions
        and all(partition.leader_id >= 0 for partition in topic.partitions)
        for topic in metadata.topics
    )


def _has_offsets(offsets: Any) -> bool:
    return all(
        partition.error_code == ErrorCode.NONE
        for topic in offsets.topics
        for partition in topic.partitions
    )
