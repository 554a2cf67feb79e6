"""Parsing the output of verifiable clients."""

import json

import pytest

from faults.history import Assigned, Committed, Polled, Sent
from faults.telling import events, member_events, polled, sent

PRODUCER = """
[2026-11-15 12:00:00,000] WARN a word of the client's log {0} (org.apache.kafka)
{"timestamp":1,"name":"startup_complete"}
{"timestamp":2,"name":"producer_send_success","key":null,"value":"9.1","topic":"t","partition":2,"offset":7}
{"timestamp":3,"name":"producer_send_success","key":null,"value":"9.0","topic":"t","partition":2,"offset":6}
{"timestamp":4,"name":"producer_send_error","key":null,"value":"9.10","topic":"t","message":"no"}
{"timestamp":5,"name":"producer_send_success","key":null,"value":"9.9","topic":"t","partition":0,"offset":0}
{"timestamp":6,"name":"shutdown_complete"}
{"timestamp":6,"name":"tool_data","sent":4,"acked":3,"target_throughput":250,"avg_throughput":1.0}
""".splitlines()
CONSUMER = """
{"timestamp":1,"name":"startup_complete"}
{"timestamp":2,"name":"partitions_assigned","partitions":[{"topic":"t","partition":0},{"topic":"t","partition":2}]}
{"timestamp":3,"name":"record_data","key":null,"value":"9.0","topic":"t","partition":2,"offset":6}
{"timestamp":4,"name":"records_consumed","count":1,"partitions":[{"topic":"t","partition":2,"count":1,"minOffset":6,"maxOffset":6}]}
{"timestamp":8,"name":"offsets_committed","offsets":[{"topic":"t","partition":2,"offset":7}],"success":true}
{"timestamp":9,"name":"offsets_committed","offsets":[{"topic":"t","partition":2,"offset":8}],"error":"no","success":false}
{"timestamp":10,"name":"partitions_revoked","partitions":[{"topic":"t","partition":0},{"topic":"t","partition":2}]}
""".splitlines()
WITNESS = """
{"name":"partitions_assigned","timestamp":2,"partitions":[{"topic":"t","partition":1}],"generation":4}
{"name":"record_data","timestamp":3,"partition":1,"offset":0,"value":"x","leader_epoch":5}
{"name":"offsets_committed","timestamp":9,"offsets":[{"topic":"t","partition":1,"offset":1}],"success":true,"generation":4,"asked":5}
""".splitlines()


def test_sent_records_are_in_sending_order() -> None:
    assert sent(events(PRODUCER), "9") == [
        Sent("9.0", 2, 6),
        Sent("9.1", 2, 7),
        Sent("9.9", 0, 0),
        Sent("9.10", -1, None),
    ]


def test_kafkas_member_reports_assignments_records_and_commits() -> None:
    assert member_events(events(CONSUMER)) == [
        Assigned(frozenset({0, 2}), 2),
        Polled(2, 6, "9.0"),
        Committed(2, 7, asked_ms=4, told_ms=8),
    ]


def test_an_assignment_is_the_sum_of_assigned_minus_revoked_partitions() -> None:
    reported: list[dict[str, object]] = [
        {"name": name, "timestamp": at_ms, "partitions": [{"partition": each} for each in parts]}
        for name, at_ms, parts in [
            ("partitions_assigned", 1, (0, 1)),
            ("partitions_revoked", 2, (1,)),
            ("partitions_assigned", 3, (2,)),
            ("partitions_revoked", 4, (0, 2)),
            ("partitions_assigned", 5, (1,)),
        ]
    ]
    assert member_events(reported) == [
        Assigned(frozenset({0, 1}), 1),
        Assigned(frozenset({0, 2}), 3),
        Assigned(frozenset({1}), 5),
    ]


def test_our_member_also_reports_generations() -> None:
    reported = list(events(WITNESS))
    assert polled(reported) == [Polled(1, 0, "x", 5)]
    assert member_events(reported) == [
        Assigned(frozenset({1}), 2, 4),
        Polled(1, 0, "x", 5),
        Committed(1, 1, asked_ms=5, told_ms=9, generation=4),
    ]


def test_half_an_object_is_an_error() -> None:
    with pytest.raises(json.JSONDecodeError):
        list(events(['{"timestamp":1,"na']))
