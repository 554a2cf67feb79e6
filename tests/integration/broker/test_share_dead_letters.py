"""Dead letters of share groups: one for each record that is given up, wherever a broker fails."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ErrorCode
from penstock.record.batch import batches
from penstock.record.dead_letter import DeadLetter, own_headers, read_dead_letter
from penstock.record.record import Record, records
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    ACCEPT,
    CONFIG_OF_GROUPS,
    REJECT,
    RELEASE,
    ShareMember,
    configure_group,
    make_topic,
    produce_keys,
    topic_id,
)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}
LETTERS = "errors.deadletterqueue."


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def link(broker: EmbeddedBroker) -> Iterator[WireLink]:
    with WireLink(broker.bootstrap) as link:
        yield link


def letters_in(link: WireLink, topic: str, count: int) -> list[Record]:
    """The dead letters of a topic, once there are `count` or after some seconds."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    found: list[Record] = []
    until = time.monotonic() + 30
    while time.monotonic() < until:
        reply = link.ask(
            FetchRequest(
                max_wait_ms=100,
                min_bytes=1,
                topics=[FetchTopic(topic_id=topic_id(link, topic), partitions=[wanted])],
            )
        )
        assert isinstance(reply, FetchResponse)
        got = reply.responses[0].partitions[0].records if reply.responses else None
        data = bytes(got) if isinstance(got, bytes | memoryview) else b""
        found = [
            each for at, header in batches(data) for each in records(data[at:], header, 1 << 20)
        ]
        if len(found) >= count:
            break
        time.sleep(0.05)
    return found


def staged(link: WireLink, name: str, *, limit: str = "5", **of_topic: str) -> str:
    """Creates a topic with records of keys a, b and c, and a group with dead letters."""
    make_topic(link, name)
    produce_keys(link, name, [b"a", b"b", b"c"])
    letters = f"dlq.{name}"
    if of_topic:
        make_topic(link, letters, configs={LETTERS + "group.enable": "true"})
    configure_group(
        link,
        name,
        {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": limit,
            LETTERS + "topic.name": letters,
            LETTERS + "copy.record.enable": of_topic.get("copy", "true"),
        },
    )
    return letters


def member(broker: EmbeddedBroker, name: str) -> ShareMember:
    found = ShareMember(broker.bootstrap, name, "m", name)
    assert found.join().error_code == 0
    return found


def test_a_rejected_record_becomes_a_dead_letter(broker: EmbeddedBroker, link: WireLink) -> None:
    letters = staged(link, "rejected", copy="true")
    a = member(broker, "rejected")
    a.acquired()
    a.acknowledge((0, 0, ACCEPT), (1, 1, REJECT))
    (letter,) = letters_in(link, letters, 1)
    assert (letter.key, letter.value, own_headers(letter.headers)) == (b"b", b"v1", [])
    assert read_dead_letter(letter.headers) == DeadLetter(
        error="rejected by a member",
        source="share",
        attempt=1,
        topic="rejected",
        partition=0,
        offset=1,
        group="rejected",
    )
    assert dict(letter.headers) == {
        "penstock-error": b"rejected by a member",
        "penstock-source": b"share",
        "penstock-attempt": b"1",
        "penstock-origin-topic": b"rejected",
        "penstock-origin-partition": b"0",
        "penstock-origin-offset": b"1",
        "penstock-origin-group": b"rejected",
        "__dlq.errors.message": b"rejected by a member",
        "__dlq.errors.topic": b"rejected",
        "__dlq.errors.partition": b"0",
        "__dlq.errors.offset": b"1",
        "__dlq.errors.group": b"rejected",
        "__dlq.errors.delivery.count": b"1",
    }
    a.acknowledge((2, 2, ACCEPT))
    assert a.acquired() == []
    a.close()


def test_a_record_delivered_too_often_becomes_a_dead_letter(
    broker: EmbeddedBroker, link: WireLink
) -> None:
    letters = staged(link, "failed", limit="2", copy="false")
    a = member(broker, "failed")
    a.acquired()
    a.acknowledge((0, 2, RELEASE))
    a.acquired()
    a.acknowledge((0, 0, ACCEPT), (1, 2, RELEASE))
    found = letters_in(link, letters, 2)
    reported = [read_dead_letter(each.headers) for each in found]
    assert [(each.offset, each.error, each.attempt) for each in reported if each] == [
        (1, "delivered 2 times", 2),
        (2, "delivered 2 times", 2),
    ]
    assert [(each.key, each.value) for each in found] == [(None, None)] * 2
    a.close()


def test_a_dead_letter_waits_for_its_topic_and_survives_a_restart(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(directory=tmp_path, settings=SETTINGS) as broker,
        WireLink(broker.bootstrap) as link,
    ):
        letters = staged(link, "waits")
        a = member(broker, "waits")
        a.acquired()
        a.acknowledge((0, 1, REJECT), (2, 2, ACCEPT))
        assert a.acquired() == []
        a.close()
    with (
        EmbeddedBroker(directory=tmp_path, settings=SETTINGS) as broker,
        WireLink(broker.bootstrap) as link,
    ):
        make_topic(link, letters, configs={LETTERS + "group.enable": "true"})
        a = member(broker, "waits")
        assert a.acquired() == []
        assert [each.value for each in letters_in(link, letters, 2)] == [b"v0", b"v1"]
        a.close()


def test_a_missing_dead_letter_topic_is_created_if_the_cluster_allows_it() -> None:
    settings = {**SETTINGS, LETTERS + "auto.create.topics.enable": "true"}
    with EmbeddedBroker(settings=settings) as broker, WireLink(broker.bootstrap) as link:
        letters = staged(link, "creates")
        a = member(broker, "creates")
        a.acquired()
        a.acknowledge((0, 2, REJECT))
        assert len(letters_in(link, letters, 3)) == 3
        a.close()


@pytest.mark.parametrize("name", ["letters", "__letters"])
def test_a_dead_letter_topic_with_another_prefix_is_refused(link: WireLink, name: str) -> None:
    wanted = AlterConfigsResource(
        CONFIG_OF_GROUPS, "refused", [AlterableConfig(LETTERS + "topic.name", 0, name)]
    )
    reply = link.ask(IncrementalAlterConfigsRequest([wanted]))
    assert isinstance(reply, IncrementalAlterConfigsResponse)
    assert reply.responses[0].error_code == ErrorCode.INVALID_CONFIG
    assert f"errors.deadletterqueue.topic.name ({name})" in (reply.responses[0].error_message or "")


def test_a_group_that_reads_its_own_dead_letters_creates_no_more(
    broker: EmbeddedBroker, link: WireLink
) -> None:
    make_topic(link, "dlq.own", configs={LETTERS + "group.enable": "true"})
    produce_keys(link, "dlq.own", [b"a"])
    settings = {"share.auto.offset.reset": "earliest", LETTERS + "topic.name": "dlq.own"}
    configure_group(link, "dlq.own", settings)
    a = member(broker, "dlq.own")
    a.acquired()
    a.acknowledge((0, 0, REJECT))
    assert a.acquired(wait_ms=500) == []
    assert len(letters_in(link, "dlq.own", 1)) == 1
    a.close()


def test_a_recreated_group_writes_its_own_dead_letters(
    broker: EmbeddedBroker, link: WireLink
) -> None:
    """They must not be mistaken for those of the former group with the same name."""
    letters = staged(link, "anew", copy="true")
    for round_ in (1, 2):
        a = member(broker, "anew")
        a.acquired()
        a.acknowledge((0, 2, REJECT))
        found = letters_in(link, letters, 3 * round_)
        assert [each.key for each in found] == [b"a", b"b", b"c"] * round_
        a.leave()
        a.close()
        reply = link.ask(DeleteGroupsRequest(["anew"]))
        assert isinstance(reply, DeleteGroupsResponse)
        assert [each.error_code for each in reply.results] == [0]


def test_pending_dead_letters_do_not_hide_altered_offsets(
    broker: EmbeddedBroker, link: WireLink
) -> None:
    staged(link, "altered")  # the dead letter topic is missing
    a = member(broker, "altered")
    a.acquired()
    a.acknowledge((0, 2, REJECT))
    a.fetch(epoch=-1)  # ends the session
    a.leave()
    a.close()
    part = AlterShareGroupOffsetsRequestPartition(0, 0)
    topic = AlterShareGroupOffsetsRequestTopic("altered", [part])
    reply = link.ask(AlterShareGroupOffsetsRequest("altered", [topic]))
    assert isinstance(reply, AlterShareGroupOffsetsResponse)
    assert reply.error_code == reply.responses[0].partitions[0].error_code == 0
    a = member(broker, "altered")
    assert a.acquired(wait_ms=2000) == [(0, 2, 1)]
    a.close()
