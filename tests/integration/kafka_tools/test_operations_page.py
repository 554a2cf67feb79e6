"""The commands of Kafka's page on basic operations, word for word except for the broker's
address.
"""

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool

AT = "--bootstrap-server localhost:9092"
GROUPS = f"bin/kafka-consumer-groups.sh {AT}"
QUOTAS = f"bin/kafka-configs.sh  {AT} --alter --add-config"
LIMITS = "'producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=200'"
PATIENCE = 30  # seconds
MOVES = f"bin/kafka-reassign-partitions.sh {AT}"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Brokers 5, 6 and 7, as the page names them."""
    settings = {"broker.id": "5", "reserved.broker.max.id": "5"}
    with EmbeddedBroker(workers=3, settings=settings) as broker:
        yield broker.bootstrap


class Page:
    """Runs the page's command lines in a folder."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def __call__(self, line: str, stdin: str = "") -> str:
        """Retries for a while: a topic becomes known to all brokers faster than a person types, but
        not at once.
        """
        script, *words = shlex.split(line.replace("localhost:9092", self._bootstrap))
        done = call_tool(script.removeprefix("bin/"), *words, stdin=stdin)
        until = time.monotonic() + PATIENCE
        while done.code and time.monotonic() < until:
            time.sleep(0.05)
            done = call_tool(script.removeprefix("bin/"), *words, stdin=stdin)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
        return done.out


@pytest.fixture
def page(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.chdir(tmp_path)
    return Page(bootstrap)


def test_the_pages_topic_commands_work(page: Page) -> None:
    topics, configs = f"bin/kafka-topics.sh {AT}", f"bin/kafka-configs.sh {AT}"
    topic = "--entity-type topics --entity-name my_topic_name"
    made = page(
        f"{topics} --create --topic my_topic_name --partitions 20 --replication-factor 3 "
        "--config max.message.bytes=64000"
    )
    assert "Created topic my_topic_name.\n" in made
    page(f"{topics} --alter --topic my_topic_name --partitions 40")
    page(f"{topics} --describe --topic my_topic_name")
    altered = page(f"{configs} {topic} --alter --add-config flush.messages=1")
    assert altered == "Completed updating config for topic my_topic_name.\n"
    assert "Dynamic configs for topic my_topic_name are:" in page(f"{configs} {topic} --describe")
    page(f"{configs} {topic} --alter --delete-config flush.messages")
    page(f"bin/kafka-leader-election.sh {AT} --election-type preferred --all-topic-partitions")
    page(f"{topics} --delete --topic my_topic_name")
    page(f"{topics} --list")


def test_the_pages_group_commands_work(page: Page) -> None:
    topics = f"bin/kafka-topics.sh {AT}"
    page(f"{topics} --create --topic topic1 --partitions 2 --replication-factor 1")
    page(f"bin/kafka-console-producer.sh {AT} --topic topic1", "a\nb\nc\n")
    for group in ("my-group", "my-other-group"):
        page(
            f"bin/kafka-console-consumer.sh {AT} --topic topic1 --from-beginning "
            f"--group {group} --max-messages 3"
        )
    assert set(page(f"{GROUPS} --list").split()) == {"my-group", "my-other-group"}
    described = page(f"{GROUPS} --describe --group my-group")
    assert "CURRENT-OFFSET  LOG-END-OFFSET  LAG" in described
    assert page(f"{GROUPS} --describe --group my-group --offsets").strip() == described.strip()
    for more in ("--members", "--members --verbose", "--state"):
        page(f"{GROUPS} --describe --group my-group {more}")
    reported = page(f"{GROUPS} --reset-offsets --group my-group --topic topic1 --to-latest")
    assert "NEW-OFFSET" in reported
    deleted = page(f"{GROUPS} --delete --group my-group --group my-other-group")
    assert "Deletion of requested consumer groups ('my-group', 'my-other-group')" in deleted
    assert page(f"{GROUPS} --list").split() == []


def test_the_pages_reassignments_work(page: Page, tmp_path: Path) -> None:
    topics = f"bin/kafka-topics.sh {AT}"
    for name in ("foo1", "foo2"):
        page(f'{topics} --create --topic {name} --replica-assignment "7,7,7"')
    moved = {"topics": [{"topic": "foo1"}, {"topic": "foo2"}], "version": 1}
    (tmp_path / "topics-to-move.json").write_text(json.dumps(moved))
    reported = page(
        f'{MOVES} --topics-to-move-json-file topics-to-move.json --broker-list "5,6" --generate'
    )
    assert reported.startswith("Current partition replica assignment\n{")
    (tmp_path / "expand-cluster-reassignment.json").write_text(reported.splitlines()[-1])
    plan = f"{MOVES} --reassignment-json-file expand-cluster-reassignment.json"
    reported = page(f"{plan} --execute")
    assert "Successfully started partition reassignments for foo1-0,foo1-1," in reported
    assert is_completed(page, plan, 6)
    custom = {
        "version": 1,
        "partitions": [
            {"topic": "foo1", "partition": 0, "replicas": [5, 6]},
            {"topic": "foo2", "partition": 1, "replicas": [6, 7]},
        ],
    }
    (tmp_path / "custom-reassignment.json").write_text(json.dumps(custom))
    plan = f"{MOVES} --reassignment-json-file custom-reassignment.json"
    reported = page(f"{plan} --execute --throttle 50000000")
    assert "The inter-broker throttle limit was set to 50000000 B/s" in reported
    page(f"{plan} --additional --execute --throttle 700000000")
    assert is_completed(page, plan, 2)
    rates = page(f"bin/kafka-configs.sh --describe {AT} --entity-type brokers")
    assert "throttled.rate" not in rates, "the last --verify has removed them"


def is_completed(page: Page, plan: str, count: int) -> bool:
    """The page says to repeat --verify until the moves are completed. A broker may not know of the
    last one yet.
    """
    until = time.monotonic() + PATIENCE
    while page(f"{plan} --verify").count("is completed.") < count:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_the_pages_quota_commands_work(page: Page) -> None:
    both = "--entity-type users --entity-name user1 --entity-type clients --entity-name clientA"
    reported = page(f"{QUOTAS} {LIMITS} {both}")
    assert reported.startswith("Completed updating config for")
    for entity in (
        "--entity-type users --entity-name user1",
        "--entity-type clients --entity-name clientA",
        "--entity-type users --entity-name user1 --entity-type clients --entity-default",
        "--entity-type users --entity-default",
        "--entity-type clients --entity-default",
    ):
        page(f"{QUOTAS} {LIMITS} {entity}")
    described = f"bin/kafka-configs.sh  {AT} --describe"
    for entity in (both, "--entity-type users --entity-name user1", "--entity-type users"):
        assert "producer_byte_rate=1024" in page(f"{described} {entity}")
    reported = page(f"{described} --entity-type users --entity-type clients")
    assert "user-principal 'user1', client-id 'clientA'" in reported
