"""Calls that a KRaft broker would answer otherwise; Kafka's tools and ours run them on Penstock."""

import json

from tool_table.call import Call


def _plan(topic: str, *replicas: int, **more: list[str]) -> str:
    moved = [{"topic": topic, "partition": 0, "replicas": list(replicas), **more}]
    return json.dumps({"partitions": moved, "version": 1})


MOVE = "kafka-reassign-partitions"
ELECT = "kafka-leader-election"
HEADERS = "--reader-property parse.key=true --reader-property parse.headers=true"
EVERYTHING = " ".join(
    f"--formatter-property print.{each}=true" for each in ("key", "headers", "partition", "offset")
)
MORE_CALLS = [
    Call("kafka-topics", "--create --topic m.x --partitions 2"),
    Call(
        "kafka-topics",
        "--create --topic big --partitions 2 --config segment.bytes=2000000 "
        "--config retention.ms=5000000 --config max.message.bytes=900000 "
        "--config cleanup.policy=compact",
    ),
    Call("kafka-topics", "--describe --topic big"),
    Call("kafka-topics", "--describe --topic big|m.x"),
    Call("kafka-topics", "--list --topic m.*"),
    Call("kafka-topics", "-describe -topic big"),
    Call("kafka-topics", "--describe --topic=big"),
    Call("kafka-topics", "--create --topic placed --replica-assignment 0,0"),
    Call("kafka-topics", "--create --topic placed2 --replica-assignment 0:0"),
    Call("kafka-topics", "--create --topic none --partitions 0"),
    Call("kafka-topics", "--delete --topic none --if-exists"),
    Call(ELECT, "--election-type preferred --all-topic-partitions"),
    Call(ELECT, "--election-type preferred --topic big --partition 0"),
    Call(ELECT, "--election-type unclean --topic none --partition 0"),
    Call(MOVE, "--list"),
    Call(
        MOVE,
        "--generate --broker-list 0 --topics-to-move-json-file {file}",
        content='{"topics":[{"topic":"big"},{"topic":"m.x"}],"version":1}',
    ),
    Call(MOVE, "--execute --reassignment-json-file {file}", content=_plan("big", 0)),
    Call(
        MOVE,
        "--execute --throttle 1000000 --reassignment-json-file {file}",
        content=_plan("big", 0),
    ),
    Call(MOVE, "--verify --reassignment-json-file {file}", content=_plan("big", 0)),
    Call(MOVE, "--cancel --reassignment-json-file {file}", content=_plan("big", 0)),
    *(
        Call(
            MOVE,
            f"{action} --reassignment-json-file {{file}}",
            content=_plan("big", 0, log_dirs=["/nowhere"]),
        )
        for action in ("--verify", "--cancel")
    ),
    Call(MOVE, "--execute --reassignment-json-file {file}", content=_plan("big", 7), only="Error"),
    Call(MOVE, "--execute --reassignment-json-file {file}", content=_plan("none", 0), only="Error"),
    Call("kafka-console-producer", f"--topic m.x {HEADERS}", stdin="a:1,b:2\tk\tv\n"),
    Call(
        "kafka-console-producer",
        "--topic m.x --reader-property parse.key=true",
        stdin="nokey\n",
    ),
    Call(
        "kafka-console-consumer",
        f"--topic m.x --partition 0 --offset earliest --max-messages 1 {EVERYTHING}",
    ),
    Call("kafka-get-offsets", "--exclude-internal-topics"),
    Call("kafka-get-offsets", "--topic m.x --time max-timestamp"),
    Call("kafka-get-offsets", "--topic m.x --time nonsense"),
    Call("kafka-get-offsets", "--topic big,m.x"),
    Call(
        "kafka-consumer-groups",
        "--reset-offsets --group fresh --topic big --to-earliest --execute",
        in_any_order=True,
    ),
    Call("kafka-consumer-groups", "--describe --group fresh", in_any_order=True),
    Call("kafka-consumer-groups", "--validate-regex b.*"),
    Call("kafka-consumer-groups", "--validate-regex b(", but=("invalid: .*",)),
    Call("kafka-configs", "--entity-type brokers --describe"),
    Call("kafka-configs", "--entity-type topics --entity-name big --describe"),
    Call("kafka-configs", "--alter --entity-type topics --entity-name big --delete-config nope"),
    Call(
        "kafka-configs",
        "--alter --entity-type topics --entity-name none --add-config retention.ms=1",
    ),
    Call(
        "kafka-configs",
        "--alter --entity-type topics --entity-name big --add-config-file {file}",
        content="retention.ms=7777\n",
    ),
]
