"""Every API, called by a user without rights, by a super user, and by one with a few ACLs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import force_setattr

from penstock.broker.authorization.table import GUARDS
from penstock.broker.authorization.whole import left_to_handler
from penstock.broker.handlers.table import HANDLERS
from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.apis import APIS
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.wire.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest
from penstock.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from support.brokers.wire_link import WireLink
from support.security.samples import GROUP, TOPIC, TRANSACTION, codes, reported, samples

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{PLAIN} required user_admin="a" user_alice="a" user_mallory="a" user_eve="a";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
NOT_YET = {3, 14, 15, 16, 51}
SHARE_STATE = range(83, 88)
MADE = (
    "FindCoordinator",
    "FindCoordinator of a transaction",
    "OffsetCommit",
    "InitProducerId of a transaction",
)
SAMPLES = {name: (request, version) for name, request, version in samples()}
NOTHING_TO_SEE = {
    "Metadata of all",
    "ListGroups",
    "ListTransactions",
    "DescribeTopicPartitions of all",
    "DescribeCluster",
    "DescribeCluster with operations",
}
"""Requests answered without an error, but with an empty result."""


class User(WireLink):
    """A client that has logged in."""

    def __init__(self, broker: EmbeddedBroker, name: str) -> None:
        super().__init__(broker.bootstrap)
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        response = self.ask(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0a".encode()), 1)
        assert isinstance(response, SaslAuthenticateResponse)
        assert response.error_code == 0


@contextmanager
def protected() -> Iterator[EmbeddedBroker]:
    """A broker with a topic, a group and a transaction that only its super user may know.

    It treats clients as possible brokers, as in a cluster whose clients and brokers share a
    listener.
    """
    with EmbeddedBroker(settings=SETTINGS) as running, User(running, "admin") as admin:
        listeners = running.running.services.listeners
        force_setattr(listeners, "clustered", True)
        new = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        admin.ask(CreateTopicsRequest(topics=[new]))
        deadline_s = time.monotonic() + 30
        for name in MADE:
            while NOT_YET & {code for _, code in codes(admin.ask(*SAMPLES[name]))}:
                # The coordinator's topic is created and loaded.
                assert time.monotonic() < deadline_s, name
        listed = {GROUP: "ListGroups", TRANSACTION: "ListTransactions", TOPIC: "Metadata of all"}
        for name, sample in listed.items():
            assert name in reported(admin.ask(*SAMPLES[sample])), "nothing could leak"
        try:
            yield running
        finally:
            force_setattr(
                listeners, "clustered", False
            )  # there are no other brokers to hand over to


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with protected() as running:
        yield running


def test_every_served_api_has_a_guard() -> None:
    assert set(GUARDS) == set(HANDLERS)


def test_the_samples_cover_every_client_api() -> None:
    open_to_all = {17, 18, 36, 71, 72}
    of_owners = {38, 39, 40, 41}  # tokens: see test_delegation_token_oracle.py
    new_in_4_4 = {93}  # see test_streams_groups.py
    asked = {type(request) for _, request, _ in samples()}
    missing = [
        api.name
        for key, api in APIS.items()
        if key in HANDLERS
        and not api.inter_broker
        and key not in open_to_all | of_owners | new_in_4_4
        if api.request not in asked
    ]
    assert missing == []


def check_that_nothing_is_told(broker: EmbeddedBroker, name: str) -> None:
    asked, version = SAMPLES[name]
    with User(broker, "mallory") as mallory:
        response = mallory.ask(asked, version)
    assert set(reported(response)) <= set(reported(asked))
    found = codes(response)
    operations = {code for kind, code in found if kind.endswith("operations")}
    errors = {code for kind, code in found if kind.endswith("error_code")} - {0}
    assert operations <= {-(2**31), 0}
    if name in NOTHING_TO_SEE:
        assert not errors
    else:
        assert errors
        assert errors <= DENIED


@pytest.mark.parametrize("name", SAMPLES)
def test_a_user_without_rights_learns_and_changes_nothing(
    broker: EmbeddedBroker, name: str
) -> None:
    check_that_nothing_is_told(broker, name)


@pytest.mark.parametrize("version", [0, 1, 9])
def test_a_user_without_rights_does_not_create_a_topic_by_asking_for_it(
    broker: EmbeddedBroker, version: int
) -> None:
    name = f"planted-{version}"
    with User(broker, "mallory") as mallory:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        response = mallory.ask(asked, version)
    assert isinstance(response, MetadataResponse)
    assert [each.error_code for each in response.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert name not in broker.running.services.cluster.image.topics


@pytest.mark.pure
def test_a_guard_that_admits_everybody_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    leaks = {16: "ListGroups", 66: "ListTransactions", 87: "ReadShareGroupStateSummary"}
    for key in leaks:
        monkeypatch.setitem(GUARDS, key, left_to_handler)
    with protected() as broker:
        for name in leaks.values():
            with pytest.raises(AssertionError):
                check_that_nothing_is_told(broker, name)


OF_BROKERS = {key: api for key, api in APIS.items() if api.inter_broker and key in HANDLERS}


@pytest.mark.parametrize("key", OF_BROKERS)
def test_inter_broker_requests_need_cluster_action(broker: EmbeddedBroker, key: int) -> None:
    """A client must not stop replicas, change leaders or forge metadata."""
    with User(broker, "mallory") as mallory:
        response = mallory.ask(OF_BROKERS[key].request(), OF_BROKERS[key].high)
    errors = {code for _, code in codes(response)}
    # Requests about share group state have an error per partition: see the samples.
    assert errors == (set() if key in SHARE_STATE else {ErrorCode.CLUSTER_AUTHORIZATION_FAILED})


@pytest.mark.parametrize("name", SAMPLES)
def test_a_super_user_may_do_everything(broker: EmbeddedBroker, name: str) -> None:
    asked, version = SAMPLES[name]
    with User(broker, "admin") as admin:
        if name == "Produce that lies":
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert {code for _, code in codes(admin.ask(asked, version))} == {refused}
            return
        response = admin.ask(asked, version)
    assert not DENIED & {code for _, code in codes(response)}


@pytest.mark.parametrize("name", ["a/b", ".", ".."])
def test_a_name_that_the_store_cannot_hold_is_refused(broker: EmbeddedBroker, name: str) -> None:
    new = AclCreation(
        resource_type=3,
        resource_name=name,
        resource_pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=2,
    )
    with User(broker, "admin") as admin:
        response = admin.ask(CreateAclsRequest(creations=[new]))
    assert isinstance(response, CreateAclsResponse)
    (result,) = response.results
    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_a_refused_broker_is_logged_as_one_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers retry transaction markers for ever; without a warning, transactions would hang
    unexplained.
    """
    with User(broker, "eve") as eve:
        for _ in range(3):
            eve.ask(WriteTxnMarkersRequest())
    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    (reported,) = warned
    assert reported.startswith(
        "User:eve from 127.0.0.1 is refused WriteTxnMarkers, which brokers send"
    )


def test_a_user_with_read_rights_cannot_fetch_as_a_replica(broker: EmbeddedBroker) -> None:
    """CVE-2018-1288: the fetch position would move the high watermark, and records would be
    lost.
    """
    topics, literal, read, allow = 2, 3, 3, 3
    rule = AclCreation(topics, TOPIC, literal, "User:alice", "*", read, allow)
    with User(broker, "admin") as admin:
        admin.ask(CreateAclsRequest(creations=[rule]))
    with User(broker, "alice") as alice:
        as_client = {code for _, code in codes(alice.ask(*SAMPLES["Fetch"]))}
        as_replica = {code for _, code in codes(alice.ask(*SAMPLES["Fetch as a broker"]))}
    assert as_client == {0}
    assert as_replica - {0} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_pattern_subscription_finds_only_topics_that_the_member_may_describe(
    broker: EmbeddedBroker,
) -> None:
    topics, groups, literal, read, allow = 2, 3, 3, 3, 3
    with User(broker, "admin") as admin:
        new = CreatableTopic(name="for-eve", num_partitions=2, replication_factor=1)
        admin.ask(CreateTopicsRequest(topics=[new]))
        rules = [
            AclCreation(kind, name, literal, "User:eve", "*", read, allow)
            for kind, name in ((topics, "for-eve"), (groups, "eves"))
        ]
        admin.ask(CreateAclsRequest(creations=rules))
        described: Any = admin.ask(MetadataRequest(topics=[MetadataRequestTopic(name="for-eve")]))
        topic_id = described.topics[0].topic_id
        join = ConsumerGroupHeartbeatRequest(
            group_id="eves",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_regex=".*",
            topic_partitions=[],
        )
        finds: Any = None
        while finds is None or finds.coordinators[0].error_code:
            finds = admin.ask(FindCoordinatorRequest(coordinator_keys=["eves"]))
    with User(broker, "eve") as eve:
        reply: Any = eve.ask(join)
        while reply.error_code in {14, 15, 16}:
            reply = eve.ask(join)
        assert reply.error_code == 0, reply
        assert [each.topic_id for each in reply.assignment.topic_partitions] == [topic_id]
