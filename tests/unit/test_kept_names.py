"""Files and pages keep the field names of 0.1.0, whatever the fields are called in the source.

A process of another version reads them: a command asks a broker that was started before, a cluster
is upgraded broker by broker.
"""

import msgspec
import pytest

from penstock.broker.pages.replicas import Replica
from penstock.broker.startup.state_file import BrokerState
from penstock.cli.run_file import RunState
from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.local import cluster
from penstock.metadata import backup
from penstock.metadata.zookeeper import session_file

KEPT: list[tuple[str, type[msgspec.Struct], str]] = [
    (
        "broker.json",
        BrokerState,
        (
            '{"pid":7,"began":"810277","broker_id":1,"cluster_id":"c","bootstrap":"h:1",'
            '"listeners":{"PLAINTEXT":"h:1"},"http":"h:2","workers":[{"index":0,"pid":8,'
            '"broker_id":1,"listeners":{"PLAINTEXT":"h:3"},"http":"h:4","restarts":5}]}'
        ),
    ),
    (
        "cluster.json",
        cluster._File,
        (
            '{"plan":{"version":1,"brokers":1,"port":9092,"zookeeper":"h:3","zookeeper_port":3,'
            '"chroot":"/c","own_addresses":true,"settings":{"a":"b"}},'
            '"zookeeper":{"pid":7,"began":"8"},"brokers":{"0":{"pid":8,"began":"9"}}}'
        ),
    ),
    (
        "run.json",
        RunState,
        (
            '{"process":{"pid":7,"began":"8"},"master":"local[1]","started_ms":5,"progress":{"q":'
            '{"query":"q","batch":1,"at":"t","rows":2,"rows_per_second":0.5,"batch_ms":3,"lag":4,'
            '"watermark":"w","broken":{"e":1}}},"bootstrap":"h:1","ended_ms":6,"error":"x"}'
        ),
    ),
    (
        session_file.FILE_NAME,
        session_file._StoredKey,
        '{"version":1,"session_id":5,"password":"YWJj","directory":[1,2]}',
    ),
    (
        "the first line of a backup",
        backup.BackupHeader,
        '{"format":"penstock-metadata","schema_version":1,"zxid":3,"nodes":4}',
    ),
    (
        "a node of a backup",
        backup.Line,
        (
            '{"path":"/a","text":"b","base64":"Yg==","version":1,"created_zxid":2,"modified_zxid":3,'
            '"created_ms":4,"children_created":5}'
        ),
    ),
    (
        "/replicas",
        Replica,
        (
            '{"broker":1,"topic":"t","partition":0,"leader":1,"leader_epoch":2,"replicas":[1,2],'
            '"isr":[1],"log_start_offset":3,"high_watermark":4,"log_end_offset":5,'
            '"follower_ends":{"2":4}}'
        ),
    ),
    (
        "/groups/rebalances",
        Rebalances,
        (
            '{"group":"g","rebalances":[{"generation":1,"reason":"r","members":2,"duration_ms":3,'
            '"ended_ms":4}],"under_way":{"reason":"r","for_ms":5}}'
        ),
    ),
]


@pytest.mark.parametrize(("kind", "text"), [each[1:] for each in KEPT], ids=[k[0] for k in KEPT])
def test_files_of_another_version_are_read_and_written_unchanged(
    kind: type[msgspec.Struct], text: str
) -> None:
    assert msgspec.json.encode(msgspec.json.decode(text, type=kind)).decode() == text
