"""What commands and metrics show of a share group, and redriving its dead letters."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping

import pytest
from click.testing import CliRunner

from penstock.advice.snapshot import cluster_snapshot
from penstock.cli.main import main
from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition
from support.brokers.wire_link import WireLink
from support.groups.share_member import (
    ACCEPT,
    REJECT,
    RELEASE,
    ShareMember,
    configure_group,
    make_topic,
    produce_keys,
)

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "penstock.http.listen": "127.0.0.1:0",
}
LETTERS = "errors.deadletterqueue."


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


@pytest.fixture
def member(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[ShareMember]:
    """A member that, of five records, has accepted 0, holds 1 and 2, released 3, and rejected 4."""
    topic = request.node.name
    with WireLink(broker.bootstrap) as link:
        make_topic(link, topic)
        make_topic(link, f"dlq.{topic}", configs={LETTERS + "group.enable": "true"})
        settings = {
            "share.auto.offset.reset": "earliest",
            "penstock.share.redelivery.backoff.ms": "3600000",
            "penstock.share.redelivery.backoff.max.ms": "3600000",
            LETTERS + "topic.name": f"dlq.{topic}",
            LETTERS + "copy.record.enable": "true",
        }
        configure_group(link, topic, settings)
        produce_keys(link, topic, [b"k%d" % n for n in range(5)])
    member = ShareMember(broker.bootstrap, topic, "m", topic)
    member.join()
    assert member.acquired() == [(0, 4, 1)]
    member.acknowledge((0, 0, ACCEPT), (3, 3, RELEASE), (4, 4, REJECT))
    yield member
    member.close()


def run(broker: EmbeddedBroker, *words: str) -> str:
    result = CliRunner().invoke(main, [*words, "--bootstrap", broker.bootstrap])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_records_in_flight_have_an_owner_and_time_left(
    broker: EmbeddedBroker, member: ShareMember
) -> None:
    words = ("group", "describe", member.group, "--records")
    held, waiting, *rest = json.loads(run(broker, *words, "--format", "json"))
    assert (held["first"], held["last"], held["state"]) == (1, 2, "acquired")
    assert (held["member"], held["deliveries"]) == (member.name, 1)
    assert 0 < held["lock_ms"] <= 30_000
    assert (waiting["first"], waiting["state"], waiting["member"]) == (3, "available", None)
    assert waiting["invisible_ms"] > 3_500_000
    assert {each["state"] for each in rest} <= {"archiving", "archived"}
    assert "1-2" in run(broker, *words)


def test_metrics_have_lag_members_and_records_in_flight(
    broker: EmbeddedBroker, member: ShareMember
) -> None:
    def metrics() -> str:
        with urllib.request.urlopen(f"http://{broker.http}/metrics", timeout=20) as page:
            return str(page.read().decode())

    name = member.group
    where = f'{{group="{name}",topic="{name}",partition="0"}}'
    wanted = {
        f'penstock_share_group_members{{group="{name}"}} 1',
        f"penstock_share_group_lag{where} 3",
        f"penstock_share_group_acquired_records{where} 2",
        f"penstock_share_group_waiting_records{where} 1",
        f"penstock_share_group_waiting_dead_letters{where} 0",
    }
    until = time.monotonic() + 30
    while not wanted <= set(metrics().splitlines()) and time.monotonic() < until:
        time.sleep(0.1)  # until the dead letter is written
    assert wanted <= set(metrics().splitlines())


def test_a_snapshot_of_the_cluster_has_the_share_groups_lag(
    broker: EmbeddedBroker, member: ShareMember
) -> None:
    async def lags() -> Mapping[TopicPartition, int]:
        async with Client(parse_addresses(broker.bootstrap)) as client:
            seen = await cluster_snapshot(client, 0)
        (found,) = [each for each in seen.groups if each.group.id == member.group]
        return found.lags

    assert asyncio.run(lags())[TopicPartition(member.topic, 0)] in {
        3,
        4,
    }  # 4 until its dead letter is written


def test_dead_letters_are_listed_and_redriven(broker: EmbeddedBroker, member: ShareMember) -> None:
    until = time.monotonic() + 30
    letters, reported = f"dlq.{member.topic}", ""
    while not reported and time.monotonic() < until:
        reported = run(broker, "dlq", "list", letters, "--format", "json")
    assert "rejected by a member" in reported
    run(broker, "dlq", "redrive", letters, "--yes")
    assert member.acquired(wait_ms=10_000)[0][0] == 5


def test_a_share_group_without_members_is_reset(
    broker: EmbeddedBroker, member: ShareMember
) -> None:
    name = member.group
    asked = ["group", "reset", name, "--to", "beginning", "--bootstrap", broker.bootstrap]
    shown = CliRunner().invoke(main, asked)
    assert f"group {name} is Stable: --execute would fail" in shown.stderr
    refused = CliRunner().invoke(main, [*asked, "--execute"])
    assert refused.exit_code == 1
    assert "NON_EMPTY_GROUP (it is Stable: stop its consumers first)" in refused.stderr
    member.leave()

    def reset(*words: str) -> tuple[int | None, int]:
        (row,) = json.loads(
            f"[{run(broker, 'group', 'reset', name, *words, '--execute', '--format', 'json')}]"
        )
        assert (row["topic"], row["partition"]) == (name, 0)
        return row["before"], row["after"]

    assert reset("--to", "4")[1] == 4
    assert reset("--shift-by", "-2") == (4, 2), "as describe tells it"
    assert reset("--to", "beginning", "-t", name) == (2, 0)
    described = json.loads(run(broker, "group", "describe", name, "--format", "json"))
    assert [each["offset"] for each in described["offsets"]] == [0]
