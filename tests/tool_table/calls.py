"""The calls, in order: later ones depend on earlier ones."""

import json

from tool_table.call import Call

VALUES = "".join(f"k{number % 7}\tvalue {number}\n" for number in range(30))
PLAIN = "".join(f"line {number}\n" for number in range(10))
KEYED = "--reader-property parse.key=true"


def _records_before(offset: int, partition: int = 0) -> str:
    wanted = [{"topic": "u", "partition": partition, "offset": offset}]
    return json.dumps({"version": 1, "partitions": wanted})


def _topics(arguments: str, **more: object) -> Call:
    return Call("kafka-topics", arguments, **more)  # type: ignore[arg-type]


def _groups(arguments: str, **more: object) -> Call:
    return Call("kafka-consumer-groups", arguments, **more)  # type: ignore[arg-type]


def _configs(arguments: str, **more: object) -> Call:
    return Call("kafka-configs", arguments, **more)  # type: ignore[arg-type]


def _offsets(arguments: str) -> Call:
    return Call("kafka-get-offsets", arguments)


TOPICS = [
    _topics("--create --topic t --partitions 3 --replication-factor 1"),
    _topics("--create --topic u --partitions 1 --config retention.ms=-1"),
    _topics("--create --topic t"),
    _topics("--create --topic t --if-not-exists"),
    _topics("--create --topic bad! --partitions 1"),
    _topics("--create --topic v --config no.such=1"),
    _topics("--create --topic v --replication-factor 9"),
    _topics("--list --exclude-internal"),
    _topics("--describe --topic t"),
    _topics("--describe --topic none"),
    _topics("--describe --topics-with-overrides --exclude-internal"),
    _topics("--describe --under-replicated-partitions --exclude-internal"),
    _topics("--describe --unavailable-partitions --exclude-internal"),
    _topics("--alter --topic u --partitions 2"),
    _topics("--alter --topic u --partitions 1"),
    _topics("--delete --topic none"),
]

RECORDS = [
    Call("kafka-console-producer", f"--topic t {KEYED}", stdin=VALUES),
    Call("kafka-console-producer", f"--topic u {KEYED}", stdin=VALUES),
    _offsets("--topic t --time latest"),
    _offsets("--topic t --time earliest"),
    _offsets("--topic t --partitions 1,2"),
    _offsets("--topic-partitions t:0-2,u:1 --time -2"),
    _offsets("--topic none"),
    _offsets("--topic u --time 4102444800000"),
    Call(
        "kafka-console-consumer",
        "--topic t --partition 1 --offset earliest --max-messages 3"
        " --formatter-property print.offset=true --formatter-property print.key=true",
    ),
    Call("kafka-delete-records", "--offset-json-file {file}", content=_records_before(2)),
    Call("kafka-delete-records", "--offset-json-file {file}", content=_records_before(-1)),
    Call("kafka-delete-records", "--offset-json-file {file}", content=_records_before(1, 7)),
    _offsets("--topic u --time earliest"),
    Call("kafka-log-dirs", "--describe --topic-list t", but=(r"\[\d{4}-[^\n]*",)),
    Call("kafka-cluster", "cluster-id"),
]

READ = "kafka-console-consumer"
RESET = "--reset-offsets --group g --topic t"
GROUPS = [
    # Only one partition has records, so that both brokers have returned the same ones when it
    # stops.
    Call(READ, "--topic u --group g --from-beginning --max-messages 4", but=(r"value \d+\n",)),
    Call(
        READ,
        "--topic t --group k --from-beginning --max-messages 30 "
        "--command-property group.protocol=consumer",
        in_any_order=True,
    ),
    _groups("--list", in_any_order=True),
    _groups("--list --state", in_any_order=True),
    _groups("--list --state Stable"),
    _groups("--list --state Nonsense"),
    _groups("--list --type", in_any_order=True),
    _groups("--list --type consumer --state Empty"),
    _groups("--list --type Classic"),
    _groups("--describe --group g --state"),
    _groups("--describe --group g --members --verbose"),
    _groups("--describe --group k", in_any_order=True),
    _groups("--describe --group k --offsets --verbose", in_any_order=True),
    _groups("--describe --group k --state --verbose"),
    _groups("--describe --group k --members"),
    _groups("--describe --group none"),
    _groups("--describe --all-groups --state", in_any_order=True),
    Call("kafka-groups", "--list", in_any_order=True),
    Call("kafka-groups", "--list --consumer", in_any_order=True),
    Call("kafka-groups", "--list --group-type classic"),
    Call("kafka-groups", "--list --protocol consumer", in_any_order=True),
    _groups(f"{RESET} --to-offset 4 --execute", in_any_order=True),
    *(
        _groups(f"{RESET} {how} --dry-run", in_any_order=True)
        for how in (
            "--to-earliest",
            "--to-latest",
            "--to-current",
            "--to-offset 2",
            "--to-offset 99",
            "--shift-by 2",
            "--shift-by -99",
            "--by-duration P1D",
            "--by-duration PT0S",
            "--to-datetime 2000-01-01T00:00:00.000",
            "--to-datetime 2100-01-01T00:00:00.000Z",
            "--to-datetime yesterday",
        )
    ),
    _groups(f"{RESET}:0,2 --to-earliest --execute", in_any_order=True),
    _groups("--describe --group g --offsets", only="^g t ", in_any_order=True),
    _groups(f"{RESET} --to-current --export --dry-run", in_any_order=True),
    _groups(
        "--reset-offsets --group g --from-file {file} --execute",
        content="t,0,3\nt,1,2\nt,2,1\n",
        in_any_order=True,
    ),
    _groups(f"{RESET} --to-latest", in_any_order=True),
    _groups("--reset-offsets --all-groups --all-topics --to-earliest --dry-run", only="^k "),
    _groups("--reset-offsets --group g --topic none --to-earliest --dry-run"),
    _groups("--delete-offsets --group g --topic t:1"),
    _groups("--delete-offsets --group g --topic none"),
    _groups("--describe --group g", only="^g t ", in_any_order=True),
    Call(
        READ,
        "--topic __consumer_offsets --from-beginning --timeout-ms 3000 "
        "--formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
        only='"group":"g","topic":"t"',
        in_any_order=True,
        but=(r",\"topicId\":\"[^\"]*\"", r"Processed a total of [^\n]*"),
    ),
    _groups("--delete --group g"),
    _groups("--delete --group g"),
    _groups("--delete --group k"),
    _groups("--list"),
]

OF_GROUP = "--entity-type groups --entity-name k"
OF_METRICS = "--entity-type client-metrics --entity-name m"
CONFIGS = [
    _configs("--entity-type topics --entity-name u --describe"),
    _configs("--entity-type topics --entity-name u --alter --add-config segment.bytes=2097152"),
    _configs("--topic u --describe", in_any_order=True),
    _configs("--topic u --alter --delete-config segment.bytes,retention.ms"),
    _configs("--topic u --describe"),
    _configs("--topic u --alter --add-config no.such=1"),
    _configs("--topic none --describe"),
    _configs("--entity-type brokers --entity-default --describe", only="^Default"),
    _configs("--broker 0 --alter --add-config log.cleaner.threads=2"),
    _configs("--broker 0 --describe", only="log.cleaner.threads"),
    _configs("--broker 0 --alter --delete-config log.cleaner.threads"),
    _configs(f"{OF_GROUP} --alter --add-config consumer.session.timeout.ms=50000"),
    _configs(f"{OF_GROUP} --describe"),
    _configs(f"{OF_GROUP} --describe --all", only=r"^consumer\.|^All"),
    _configs("--group k --describe"),
    _configs("--entity-type groups --describe"),
    _configs(f"{OF_GROUP} --alter --add-config consumer.session.timeout.ms=1"),
    _configs(f"{OF_GROUP} --alter --add-config no.such=1"),
    _configs(f"{OF_GROUP} --alter --delete-config consumer.session.timeout.ms"),
    _configs(f"{OF_GROUP} --alter --delete-config consumer.session.timeout.ms"),
    _configs(f"{OF_GROUP} --describe"),
    _configs("--client-metrics none --describe"),
    _configs(f"{OF_METRICS} --alter --add-config metrics=org.apache.,interval.ms=10000"),
    _configs(f"{OF_METRICS} --describe", in_any_order=True),
    _configs("--entity-type client-metrics --describe", in_any_order=True),
    _configs(f"{OF_METRICS} --alter --add-config interval.ms=1"),
    _configs(f"{OF_METRICS} --alter --delete-config metrics,interval.ms"),
    _configs("--entity-type client-metrics --describe"),
    _topics("--delete --topic u"),
    _topics("--list --exclude-internal"),
]

CALLS = [*TOPICS, *RECORDS, *GROUPS, *CONFIGS]
