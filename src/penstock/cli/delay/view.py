"""Rows and columns of pending records."""

from typing import Any

from penstock.cli.output import Column, iso_time
from penstock.config.delay_route import DelayRoute, Route
from penstock.retry.pending import Pending

COLUMNS = (
    Column("PARTITION", "partition"),
    Column("OFFSET", "offset"),
    Column("KEY", "key"),
    Column("DUE", "due"),
    Column("ATTEMPT", "attempt"),
    Column("SCHEDULE", "schedule"),
    Column("TIMESTAMP", "timestamp", is_wide=True),
    Column("BYTES", "bytes", is_wide=True),
    Column("ERROR", "error"),
)

ROUTE_COLUMNS = (
    Column("TOPIC", "topic"),
    Column("KIND", "kind"),
    Column("TO", "to"),
    Column("DEAD LETTERS", "dead_letters"),
)


def pending_row(each: Pending) -> dict[str, Any]:
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "offset": each.offset,
        "key": None if each.key is None else each.key.decode(errors="replace"),
        "due_ms": each.due_ms,
        "due": iso_time(each.due_ms) if each.due_ms else "now",
        "attempt": each.attempt,
        "schedule": each.schedule,
        "timestamp_ms": each.timestamp_ms,
        "timestamp": iso_time(each.timestamp_ms),
        "bytes": each.size_bytes,
        "error": each.error,
    }


def route_row(route: Route) -> dict[str, Any]:
    return {
        "topic": route.topic,
        "kind": "delay" if isinstance(route, DelayRoute) else "retry",
        "to": route.to,
        "dead_letters": route.dead_letters,
    }
