"""The JSON output of commands: names and types that programs may rely on, in one table."""

from typing import Any, NamedTuple

Schema = Any
"""A type, a tuple of alternatives (None among them), a list with the schema of its items, or a dict
by name; {str: X} allows any names.
"""
NUMBER = (int, float)


class Command(NamedTuple):
    """A call, and the schema of each object that it prints."""

    call: str
    schema: Schema


TOPIC = {
    "name": str,
    "id": str,
    "internal": bool,
    "partition_count": int,
    "replication_factor": int,
}
MOVE = {
    "brokers": [
        {
            "broker": int,
            "replicas": int,
            "replicas_after": int,
            "leaders": int,
            "leaders_after": int,
        }
    ],
    "copied": int,
    "moves": [{"topic": str, "partition": int, "before": [int], "after": [int]}],
}
BROKER = {"id": int, "address": str, "rack": (str, None), "controller": bool}
SETTING = {
    "name": str,
    "value": (str, None),
    "source": str,
    "read_only": bool,
    "documentation": (str, None),
}
PRODUCER = {
    "topic": str,
    "partition": int,
    "producer_id": int,
    "producer_epoch": int,
    "last_sequence": int,
    "last_timestamp_ms": int,
    "last_time": (str, None),
    "coordinator_epoch": (int, None),
    "transaction_start": (int, None),
}
SUMMARY = {
    "id": str,
    "state": str,
    "members": int,
    "topics": [str],
    "partitions": int,
    "lag": int,
    "lag_seconds": (*NUMBER, None),
}
TRIMMED = {
    "topic": str,
    "partition": int,
    "before": int,
    "after": int,
    "deleted": int,
    "executed": bool,
}
RATES = {
    "test": str,
    "topic": str,
    "records": int,
    "bytes": int,
    "seconds": NUMBER,
    "records_per_second": NUMBER,
    "mb_per_second": NUMBER,
}
LATENCIES = dict.fromkeys(
    (f"latency_{each}_ms" for each in ("avg", "max", "p50", "p95", "p99", "p999")), NUMBER
)

SCHEMAS: dict[str, Command] = {
    "status": Command(
        "status --dir {folder}",
        {
            "directory": str,
            "running": bool,
            "pid": (int, None),
            "broker_id": (int, None),
            "cluster_id": (str, None),
            "bootstrap": (str, None),
            "http": (str, None),
            "delay_http": (str, None),
            "workers": [int],
        },
    ),
    "cluster info": Command(
        "cluster info",
        {
            "id": (str, None),
            "controller": (int, None),
            "brokers": [{"id": int, "address": str, "rack": (str, None)}],
            "topic_count": int,
            "internal_topic_count": int,
            "partition_count": int,
            "replica_count": int,
            "features": {str: int},
        },
    ),
    "cluster health": Command(
        "cluster health",
        {
            "healthy": bool,
            "controller": (int, None),
            "brokers": [int],
            "down": [int],
            "leaderless": [str],
            "under_replicated": [str],
        },
    ),
    "broker list": Command(
        "broker list",
        {**BROKER, "leaders": int, "replicas": int, "out_of_sync": int, "size_bytes": (int, None)},
    ),
    "broker describe": Command(
        "broker describe 1",
        {
            **BROKER,
            "log_dirs": [
                {
                    "path": str,
                    "state": str,
                    "replicas": int,
                    "size_bytes": int,
                    "usable_bytes": (int, None),
                    "total_bytes": (int, None),
                }
            ],
            "apis": int,
            "features": {str: int},
        },
    ),
    "broker config": Command("broker config 1 --all", SETTING),
    "topic list": Command("topic list", TOPIC),
    "topic list with usage": Command(
        "topic list --size --records --lag",
        {**TOPIC, "size_bytes": (int, None), "records": (int, None), "lag": (int, None)},
    ),
    "topic describe": Command(
        "topic describe events --all-configs",
        {
            **TOPIC,
            "configs": [{"name": str, "value": (str, None), "source": str}],
            "partitions": [
                {
                    "partition": int,
                    "leader": (int, None),
                    "leader_epoch": int,
                    "replicas": [int],
                    "isr": [int],
                    "offline": [int],
                    "start_offset": (int, None),
                    "end_offset": (int, None),
                }
            ],
        },
    ),
    "topic create": Command(
        "topic create made --partitions 1 --validate-only",
        {
            "name": str,
            "id": str,
            "partition_count": int,
            "replication_factor": int,
            "created": bool,
        },
    ),
    "topic alter": Command(
        "topic alter other --config retention.ms=1000 --validate-only",
        {"name": str, "altered": bool},
    ),
    "consume": Command(
        "consume events",
        {
            "topic": str,
            "partition": int,
            "offset": int,
            "timestamp": str,
            "timestamp_ms": int,
            "key": (str, None),
            "value": (str, None),
            "headers": [{"key": str, "value": (str, None)}],
        },
    ),
    "topic trim": Command("topic trim events --before 0 --dry-run", TRIMMED),
    "group list": Command(
        "group list", {"id": str, "protocol_type": str, "state": str, "type": str}
    ),
    "group describe": Command(
        "group describe billing",
        {
            "group": {
                "id": str,
                "state": str,
                "protocol_type": str,
                "strategy": str,
                "members": [dict],
                "type": str,
                "epoch": (int, None),
                "assignment_epoch": (int, None),
            },
            "offsets": [
                {
                    "topic": str,
                    "partition": int,
                    "offset": (int, None),
                    "end": (int, None),
                    "lag": (int, None),
                    "lag_seconds": (*NUMBER, None),
                    "metadata": (str, None),
                    "member": (str, None),
                    "client": (str, None),
                    "host": (str, None),
                }
            ],
        },
    ),
    "group describe --summary": Command("group describe --summary", SUMMARY),
    "group why": Command(
        "group why billing --seconds 0.1",
        {"group": str, "cause": str, "sentence": str, "advice": str},
    ),
    "group watch": Command(
        "group watch --count 1",
        {
            "time": str,
            "timestamp_ms": int,
            **SUMMARY,
            "change_per_second": (*NUMBER, None),
        },
    ),
    "group reset": Command(
        "group reset billing --to end",
        {
            "group": str,
            "topic": str,
            "partition": int,
            "before": (int, None),
            "after": int,
            "executed": bool,
        },
    ),
    "config list": Command(
        "config list", {"type": str, "name": str, "count": int, "settings": [str]}
    ),
    "config describe": Command("config describe topic events --all", SETTING),
    "config diff": Command(
        "config diff topic events other", {"name": str, "a": (str, None), "b": (str, None)}
    ),
    "config check": Command(
        "config check {folder}/bad.properties",
        {"file": str, "settings": int, "error": (str, None), "warnings": [str]},
    ),
    "reassign plan": Command("reassign plan", MOVE),
    "leader elect": Command("leader elect events", {"topic": str, "partition": int, "result": str}),
    "txn list": Command(
        "txn list", {"id": str, "coordinator": int, "producer_id": int, "state": str}
    ),
    "txn describe": Command(
        "txn describe payments",
        {
            "id": str,
            "state": str,
            "producer_id": int,
            "producer_epoch": int,
            "coordinator": int,
            "timeout_ms": int,
            "start_ms": (int, None),
            "started": (str, None),
            "partitions": [str],
        },
    ),
    "producer list": Command("producer list other", PRODUCER),
    "bench produce": Command("bench produce measured --records 5", {**RATES, **LATENCIES}),
    "bench consume": Command("bench consume measured --records 5", RATES),
    "verify": Command(
        "verify measured --records 5",
        {
            "topic": str,
            "written": int,
            "read": int,
            "missing": int,
            "repeated": int,
            "disordered": int,
            "examples": [int],
            "good": bool,
        },
    ),
    "plan": Command(
        "plan --messages 1 --size 1 --retention 1d",
        {"workload": {str: NUMBER}, "capacity": {str: NUMBER}},
    ),
    "doctor": Command(
        "doctor --folder {folder}/logs",
        {
            **dict.fromkeys(("level", "check", "what", "meaning", "advice", "subject"), str),
            "since_ms": (int, None),
        },
    ),
    "bundle": Command("bundle --output {folder}/b.tar.gz", {"file": str, "contents": [str]}),
    "profile list": Command(
        "profile list",
        {
            "name": str,
            "current": bool,
            "bootstrap": (str, None),
            "settings": int,
            "built_in": bool,
        },
    ),
    "profile show": Command("profile show classic", {"name": str, "settings": {str: str}}),
    "completion": Command("completion bash", {"shell": str, "script": str}),
}


def problem(value: object, schema: Schema, where: str = "it") -> str | None:
    """The first mismatch with the schema; None if there is none."""
    match schema:
        case None:
            return None if value is None else f"{where} is {value!r}, not null"
        case tuple():
            found = [problem(value, each, where) for each in schema]
            return None if None in found else found[0]
        case list():
            if not isinstance(value, list):
                return f"{where} is no list"
            items = (problem(each, schema[0], f"{where}[]") for each in value)
            return next((each for each in items if each), None)
        case dict():
            return _object_problem(value, schema, where)
        case _:
            is_other = isinstance(value, bool) and schema is not bool
            if is_other or not isinstance(value, schema):
                return f"{where} is {value!r}, not {schema.__name__}"
            return None


def _object_problem(value: object, schema: dict[Any, Schema], where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where} is no object"
    if str in schema:
        schema = dict.fromkeys(value, schema[str])
    if set(value) != set(schema):
        return f"{where} has {sorted(value)} instead of {sorted(schema)}"
    found = (problem(value[name], each, f"{where}.{name}") for name, each in schema.items())
    return next((each for each in found if each), None)
