"""Write deploy/grafana/*.json from the tables below; `make docs` runs it.

Grafana's own export has a hundred lines for each panel; here a panel is its title, unit and
expressions.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana"
COLUMNS, WIDTH, HEIGHT = 3, 8, 7

TOPIC = "kafka_server_brokertopicmetrics"
MANAGER = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"
DIRECTORY = "penstock_log_directory"
CHOSEN = 'topic=~"$topic"'
GROUP = 'group=~"$group"'

Panel = tuple[str, str, dict[str, str]]
"""Title, unit, and expressions by legend."""

BROKER: list[Panel] = [
    ("Controllers", "none", {"active": f"sum({CONTROLLER}_activecontrollercount)"}),
    (
        "Partitions in trouble",
        "none",
        {
            "offline": f"max({CONTROLLER}_offlinepartitionscount)",
            "under-replicated": f"sum({MANAGER}_underreplicatedpartitions)",
            "under min.insync.replicas": f"sum({MANAGER}_underminisrpartitioncount)",
            "at min.insync.replicas": f"sum({MANAGER}_atminisrpartitioncount)",
        },
    ),
    (
        "Changes of in-sync sets, elections",
        "cpm",
        {
            "shrinks": f"60 * sum(rate({MANAGER}_isrshrinks_total[5m]))",
            "expands": f"60 * sum(rate({MANAGER}_isrexpands_total[5m]))",
            "elections": "60 * sum(rate("
            "kafka_controller_controllerstats_leaderelectionrateandtimems_count[5m]))",
            "unclean": "60 * sum(rate("
            "kafka_controller_controllerstats_uncleanleaderelections_total[5m]))",
        },
    ),
    (
        "Records in",
        "cps",
        {"{{instance}}": f"sum by (instance) (rate({TOPIC}_messagesin_total[1m]))"},
    ),
    (
        "Bytes in",
        "Bps",
        {"{{instance}}": f"sum by (instance) (rate({TOPIC}_bytesin_total[1m]))"},
    ),
    (
        "Bytes out",
        "Bps",
        {
            "consumers {{instance}}": f"sum by (instance) (rate({TOPIC}_bytesout_total[1m]))",
            "followers {{instance}}": (
                f"sum by (instance) (rate({TOPIC}_replicationbytesout_total[1m]))"
            ),
        },
    ),
    (
        "Requests by API",
        "reqps",
        {"{{request}}": "sum by (request) (rate(kafka_network_requestmetrics_requests_total[1m]))"},
    ),
    (
        "Time of requests, 99 %",
        "s",
        {
            "{{request}}": "histogram_quantile(0.99, "
            "sum by (request, le) (rate(penstock_request_seconds_bucket[5m])))"
        },
    ),
    (
        "Requests refused",
        "reqps",
        {
            "produce": f"sum(rate({TOPIC}_failedproducerequests_total[1m]))",
            "fetch": f"sum(rate({TOPIC}_failedfetchrequests_total[1m]))",
            "{{request}}": (
                "sum by (request) (rate(kafka_network_requestmetrics_errors_total[1m])) > 0"
            ),
        },
    ),
    (
        "Requests that wait",
        "none",
        {
            "{{delayedOperation}}": "sum by (delayedOperation) "
            "(kafka_server_delayedoperationpurgatory_purgatorysize)"
        },
    ),
    ("Delay of the event loop", "s", {"{{instance}}": "penstock_event_loop_lag_seconds"}),
    (
        "Idle share of the event loop",
        "percentunit",
        {"{{instance}}": "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"},
    ),
    (
        "Connections",
        "none",
        {"{{instance}}": "kafka_server_socket_server_metrics_connection_count"},
    ),
    ("CPU", "percentunit", {"{{instance}}": "rate(process_cpu_seconds_total[1m])"}),
    ("Memory", "bytes", {"{{instance}}": "process_resident_memory_bytes"}),
    (
        "Free disk",
        "percentunit",
        {"{{instance}} {{path}}": f"{DIRECTORY}_free_bytes / {DIRECTORY}_disk_bytes"},
    ),
    (
        "Disk traffic",
        "Bps",
        {
            "read {{instance}}": "rate(kafka_server_kafkaserver_linux_disk_read_bytes[1m])",
            "write {{instance}}": "rate(kafka_server_kafkaserver_linux_disk_write_bytes[1m])",
        },
    ),
    (
        "Log directories offline, open files",
        "none",
        {
            "offline {{instance}}": "kafka_log_logmanager_offlinelogdirectorycount",
            "files {{instance}}": "process_open_fds",
        },
    ),
]

TOPICS: list[Panel] = [
    (
        "Records in",
        "cps",
        {"{{topic}}": f"sum by (topic) (rate({TOPIC}_messagesin_total{{{CHOSEN}}}[1m]))"},
    ),
    (
        "Bytes in",
        "Bps",
        {"{{topic}}": f"sum by (topic) (rate({TOPIC}_bytesin_total{{{CHOSEN}}}[1m]))"},
    ),
    (
        "Bytes out",
        "Bps",
        {"{{topic}}": f"sum by (topic) (rate({TOPIC}_bytesout_total{{{CHOSEN}}}[1m]))"},
    ),
    (
        "Size on all disks",
        "bytes",
        {"{{topic}}": f"sum by (topic) (kafka_log_log_size{{{CHOSEN}}})"},
    ),
    (
        "Records kept",
        "none",
        {
            "{{topic}}": f"sum by (topic) (kafka_topic_partition_current_offset{{{CHOSEN}}} "
            f"- kafka_topic_partition_oldest_offset{{{CHOSEN}}})"
        },
    ),
    ("Partitions", "none", {"{{topic}}": f"sum by (topic) (kafka_topic_partitions{{{CHOSEN}}})"}),
    (
        "Records in by partition",
        "cps",
        {
            "{{topic}}-{{partition}}": "topk(20, sum by (topic, partition) "
            f"(rate(kafka_topic_partition_current_offset{{{CHOSEN}}}[1m])))"
        },
    ),
    (
        "Partitions under-replicated",
        "none",
        {
            "{{topic}}": "sum by (topic) "
            f"(kafka_topic_partition_under_replicated_partition{{{CHOSEN}}})"
        },
    ),
    (
        "LogEndOffset of the replicas: the longest less the shortest",
        "none",
        {
            "{{topic}}-{{partition}}": "topk(20, "
            f"max by (topic, partition) (kafka_log_log_logendoffset{{{CHOSEN}}}) "
            f"- min by (topic, partition) (kafka_log_log_logendoffset{{{CHOSEN}}}))"
        },
    ),
]

LAG: list[Panel] = [
    ("Records behind", "none", {"{{group}}": f"sum by (group) (consumer_lag{{{GROUP}}})"}),
    ("Seconds behind", "s", {"{{group}}": f"max by (group) (consumer_lag_seconds{{{GROUP}}})"}),
    (
        "Members",
        "none",
        {
            "{{consumergroup}}": "sum by (consumergroup) "
            '(kafka_consumergroup_members{consumergroup=~"$group"})'
        },
    ),
    (
        "Records read (committed)",
        "cps",
        {
            "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) (rate("
            'kafka_consumergroup_current_offset{consumergroup=~"$group"}[1m]))'
        },
    ),
    (
        "Partitions furthest behind",
        "none",
        {
            "{{group}} {{topic}}-{{partition}}": "topk(20, "
            f"sum by (group, topic, partition) (consumer_lag{{{GROUP}}}))"
        },
    ),
    (
        "Partitions longest behind",
        "s",
        {
            "{{group}} {{topic}}-{{partition}}": "topk(20, "
            f"max by (group, topic, partition) (consumer_lag_seconds{{{GROUP}}}))"
        },
    ),
]

DELAY: list[Panel] = [
    (
        "Records that wait",
        "none",
        {"{{topic}}": f"sum by (topic) (penstock_delay_pending{{{CHOSEN}}})"},
    ),
    (
        "Due, and not delivered yet",
        "ms",
        {"{{topic}}": f"max by (topic) (penstock_delay_late_ms{{{CHOSEN}}})"},
    ),
    (
        "From due time to delivery",
        "s",
        {
            "99 %": "histogram_quantile(0.99, "
            "sum by (le) (rate(penstock_delay_lateness_seconds_bucket[5m])))",
            "50 %": "histogram_quantile(0.5, "
            "sum by (le) (rate(penstock_delay_lateness_seconds_bucket[5m])))",
        },
    ),
    (
        "Delivered, cancelled, postponed",
        "cps",
        {
            f"{each} {{{{topic}}}}": (
                f"sum by (topic) (rate(penstock_delay_{each}_total{{{CHOSEN}}}[1m]))"
            )
            for each in ("moved", "cancelled", "postponed")
        },
    ),
    (
        "Dead letters",
        "cps",
        {"{{topic}}": f"sum by (topic) (rate(penstock_delay_dead_letters_total{{{CHOSEN}}}[5m]))"},
    ),
    (
        "Faults",
        "none",
        {
            "stores that answer": "sum(penstock_delay_store_up)",
            "topics that cannot be written": "sum(penstock_delay_refused_topics)",
            "restarts in an hour": "sum(increase(penstock_delay_restarts_total[1h]))",
            "store failures in an hour": "sum(increase(penstock_delay_store_failures_total[1h]))",
        },
    ),
    (
        "Not yet seen by the delay service",
        "none",
        {"{{topic}}": 'sum by (topic) (consumer_lag{group="penstock-delay"})'},
    ),
    (
        "Members of the delay service",
        "none",
        {"members": 'sum(kafka_consumergroup_members{consumergroup="penstock-delay"})'},
    ),
]

PIPELINES: list[Panel] = [
    ("Records behind (groupId of the source)", *LAG[0][1:]),
    ("Seconds behind", *LAG[1][1:]),
    ("Records read", *LAG[3][1:]),
    ("Records in: topics that are read or written", *TOPICS[0][1:]),
    ("Bytes out", *TOPICS[2][1:]),
    ("Partitions furthest behind", *LAG[4][1:]),
]

VARIABLES = {
    "topic": "label_values(kafka_topic_partitions, topic)",
    "group": "label_values(consumer_lag, group)",
}
DASHBOARDS: dict[str, tuple[list[Panel], tuple[str, ...]]] = {
    "broker": (BROKER, ()),
    "topics": (TOPICS, ("topic",)),
    "lag": (LAG, ("group",)),
    "delay": (DELAY, ("topic",)),
    "pipelines": (PIPELINES, ("group", "topic")),
}


def dashboard(name: str, panels: list[Panel], variables: tuple[str, ...]) -> dict[str, Any]:
    return {
        "uid": f"penstock-{name}",
        "title": f"Penstock: {name}",
        "tags": ["penstock"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [SOURCE, *(variable(each) for each in variables)]},
        "panels": [panel(number, *each) for number, each in enumerate(panels)],
    }


SOURCE = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
DATASOURCE = {"type": "prometheus", "uid": "${source}"}


def variable(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": VARIABLES[name],
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def panel(number: int, title: str, unit: str, expressions: dict[str, str]) -> dict[str, Any]:
    row, column = divmod(number, COLUMNS)
    place = {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend}
            for at, (legend, expression) in enumerate(expressions.items())
        ],
    }


def written() -> dict[Path, str]:
    return {
        FOLDER / f"{name}.json": json.dumps(dashboard(name, *parts), indent=1) + "\n"
        for name, parts in DASHBOARDS.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in written().items():
        path.write_text(text)
