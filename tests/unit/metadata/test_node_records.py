"""Contents of nodes, as written by three brokers of Kafka 3.9.2."""

import msgspec
import pytest

from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.metadata.records import (
    ClusterId,
    ConfigChange,
    ConfigOverrides,
    ElectedController,
    Feature,
    LogDirEvent,
    MalformedRecord,
    PartitionNames,
    PartitionReassignment,
    PartitionReassignments,
    PartitionState,
    ProducerIdBlock,
    TopicAssignment,
    broker_id_of,
    decode,
    decode_epoch,
    encode,
)
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Node
from penstock.types import (
    NO_UUID,
    BrokerId,
    LeaderEpoch,
    ProducerId,
    TopicPartition,
    parse_uuid,
)

B0, B1, B2 = BrokerId(0), BrokerId(1), BrokerId(2)
TOPIC_ID = parse_uuid("2TjEEIxXQEqTSneHmIscYQ")
PLAIN = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 9092)


def holding(data: bytes | None) -> Node:
    return Node("/here", data, 0, 1, 1, 0)


SEEN = [
    (ClusterId(id="srCQUxr4RMaXvsauefXd2g"), b'{"version":"1","id":"srCQUxr4RMaXvsauefXd2g"}'),
    (
        BrokerRegistration.of([PLAIN], 1794716063645),
        (
            b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            b'"endpoints":["PLAINTEXT://127.0.0.1:9092"],"jmx_port":-1,"port":9092,'
            b'"host":"127.0.0.1","version":5,"timestamp":"1794716063645"}'
        ),
    ),
    (
        BrokerRegistration.of([PLAIN], 1794716063645, unclean_shutdown=True),
        (
            b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            b'"endpoints":["PLAINTEXT://127.0.0.1:9092"],"jmx_port":-1,"port":9092,'
            b'"host":"127.0.0.1","version":5,"timestamp":"1794716063645","page_cache_lost":true}'
        ),
    ),
    (
        ElectedController(broker=B2, timestamp="1794716063869"),
        b'{"version":2,"brokerid":2,"timestamp":"1794716063869","kraftControllerEpoch":-1}',
    ),
    (Feature(), b'{"features":{},"version":2,"status":1}'),
    (
        Feature.of({"group.version": 1}),
        b'{"features":{},"version":2,"status":1,"penstock_features":{"group.version":1}}',
    ),
    (
        TopicAssignment.of(TOPIC_ID, {0: (B2, B1, B0), 1: (B1, B0, B2)}),
        (
            b'{"partitions":{"0":[2,1,0],"1":[1,0,2]},"topic_id":"2TjEEIxXQEqTSneHmIscYQ",'
            b'"adding_replicas":{},"removing_replicas":{},"version":3}'
        ),
    ),
    (
        TopicAssignment(
            partitions={0: (B0, B2, B1)},
            topic_id="2TjEEIxXQEqTSneHmIscYQ",
            adding_replicas={0: (B0,)},
            removing_replicas={0: (B1,)},
        ),
        (
            b'{"partitions":{"0":[0,2,1]},"topic_id":"2TjEEIxXQEqTSneHmIscYQ",'
            b'"adding_replicas":{"0":[0]},"removing_replicas":{"0":[1]},"version":3}'
        ),
    ),
    (
        PartitionState(controller_epoch=1, leader=B2, leader_epoch=LeaderEpoch(0), isr=(B2, B1)),
        b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}',
    ),
    (
        PartitionState(
            controller_epoch=3,
            leader=B0,
            leader_epoch=LeaderEpoch(4),
            isr=(B0,),
            leader_recovery_state=1,
        ),
        (
            b'{"controller_epoch":3,"leader":0,"version":1,"leader_epoch":4,"isr":[0],'
            b'"leader_recovery_state":1}'
        ),
    ),
    (
        ConfigOverrides(config={"min.insync.replicas": "2"}),
        b'{"version":1,"config":{"min.insync.replicas":"2"}}',
    ),
    (ConfigOverrides(), b'{"version":1,"config":{}}'),
    (ConfigChange(entity_path="topics/t1"), b'{"version":2,"entity_path":"topics/t1"}'),
    (
        PartitionReassignments(partitions=(PartitionReassignment("t2", 1, (B1, B0)),)),
        b'{"version":1,"partitions":[{"topic":"t2","partition":1,"replicas":[1,0]}]}',
    ),
    (
        PartitionNames.of([TopicPartition("t1", 0)]),
        b'{"version":1,"partitions":[{"topic":"t1","partition":0}]}',
    ),
    (
        ProducerIdBlock.of(B0, ProducerId(0), 1000),
        b'{"version":1,"broker":0,"block_start":"0","block_end":"999"}',
    ),
    (LogDirEvent(broker=B0), b'{"version":1,"broker":0,"event":1}'),
]


@pytest.mark.parametrize(("record", "seen"), SEEN, ids=lambda each: type(each).__name__)
def test_records_are_written_and_read_as_in_kafka(record: ClusterId, seen: bytes) -> None:
    assert encode(record) == seen
    assert decode(type(record), holding(seen)) == record


def test_the_controller_epoch_is_a_bare_number() -> None:
    assert encode(7) == b"7"
    assert decode_epoch(holding(b"7")) == 7


@pytest.mark.parametrize("data", [b"-1", b"2147483647", b'"7"'])
def test_a_controller_epoch_without_a_next_one_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedRecord, match="/here"):
        decode_epoch(holding(data))


@pytest.mark.parametrize(
    ("name", "broker"), [("7", 7), ("2147483647", 2147483647), ("2147483648", None), ("x", None)]
)
def test_a_node_with_an_impossible_broker_id_names_no_broker(name: str, broker: int | None) -> None:
    assert broker_id_of(name) == broker


def test_unknown_fields_and_spaces_are_ignored() -> None:
    text = b'{ "version": 9, "config": {"a": "b"}, "invented": [1, {"later": true}] }'
    assert decode(ConfigOverrides, holding(text)).config == {"a": "b"}


def state_with(**fields: object) -> bytes:
    whole = {"controller_epoch": 1, "leader": 0, "leader_epoch": 0, "isr": [0]}
    return msgspec.json.encode(whole | fields)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (ConfigOverrides, None),
        (ConfigOverrides, b""),
        (ConfigOverrides, b"{"),
        (ConfigOverrides, b"\xff"),
        (ConfigOverrides, b'{"config":{"a":1}}'),
        (TopicAssignment, b'{"version":3}'),
        (TopicAssignment, b'{"partitions":{"x":[0]}}'),
        (TopicAssignment, b'{"partitions":{"0":[1]},"topic_id":"short"}'),
        (TopicAssignment, b'{"partitions":{"-1":[0]}}'),
        (TopicAssignment, b'{"partitions":{"0":[1],"1":[]}}'),
        (BrokerRegistration, b'{"endpoints":["nowhere"]}'),
        (BrokerRegistration, b'{"endpoints":["INTERNAL://h:1"]}'),
        (int, b'"1"'),
        # Numbers and texts that no request or response can carry.
        (TopicAssignment, b'{"partitions":{"0":[2147483648]}}'),
        (TopicAssignment, b'{"partitions":{"2147483648":[0]}}'),
        (TopicAssignment, b'{"partitions":{"0":[0]},"adding_replicas":{"0":[2147483648]}}'),
        (PartitionState, state_with(leader_epoch=2147483647)),
        (PartitionState, state_with(controller_epoch=2147483648)),
        (PartitionState, state_with(leader=2147483648)),
        (PartitionState, state_with(isr=[2147483648])),
        (ElectedController, b'{"brokerid":2147483648,"timestamp":"1"}'),
        (Feature, b'{"penstock_features":{"group.version":32768}}'),
        (BrokerRegistration, b'{"endpoints":["PLAINTEXT://h:65536"]}'),
        (BrokerRegistration, b'{"endpoints":["PLAINTEXT://%s:1"]}' % (b"h" * 32768)),
        (BrokerRegistration, b'{"host":"h","port":1,"rack":"%s"}' % (b"r" * 32768)),
        (ProducerIdBlock, b'{"broker":0,"block_start":"0","block_end":"no number"}'),
        (ProducerIdBlock, b'{"broker":0,"block_start":"0","block_end":"9223372036854775807"}'),
    ],
)
def test_malformed_contents_are_refused_with_their_path(kind: type, data: bytes | None) -> None:
    with pytest.raises(MalformedRecord, match="/here"):
        decode(kind, holding(data))


def test_a_topic_from_before_topic_ids_has_no_id() -> None:
    assert decode(TopicAssignment, holding(b'{"version":1,"partitions":{"0":[1]}}')).id() == NO_UUID


def test_a_registration_names_every_listener_and_one_plaintext_address() -> None:
    addresses = (
        Endpoint("INTERNAL", SecurityProtocol.SASL_SSL, "::1", 9093),
        Endpoint("PUBLIC", SecurityProtocol.PLAINTEXT, "example.org", 9092),
    )
    registration = BrokerRegistration.of(addresses, 5, rack="r1")
    assert registration.endpoints == ("INTERNAL://[::1]:9093", "PUBLIC://example.org:9092")
    assert (registration.host, registration.port) == ("example.org", 9092)
    again = decode(BrokerRegistration, holding(encode(registration)))
    assert (again.addresses(), again.rack_name()) == (addresses, "r1")
    secure = BrokerRegistration.of(addresses[:1], 5)
    assert (secure.host, secure.port, secure.rack_name()) == (None, -1, None)


def test_older_registrations_are_read() -> None:
    first = b'{"version":1,"host":"127.0.0.1","port":9092,"jmx_port":-1,"timestamp":"1"}'
    third = b'{"version":3,"endpoints":["PLAINTEXT://127.0.0.1:9092"],"rack":null,"timestamp":"1"}'
    for text in (first, third):
        registration = decode(BrokerRegistration, holding(text))
        assert registration.addresses() == (PLAIN,)
        assert registration.rack_name() is None


def test_producer_id_blocks_follow_each_other() -> None:
    block = ProducerIdBlock.of(B1, ProducerId(5000), 1000)
    assert (block.block_end, block.next_start()) == ("5999", 6000)
