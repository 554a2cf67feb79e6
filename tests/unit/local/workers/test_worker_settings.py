"""The settings of each worker of a machine: ports, addresses, folders, ids."""

from pathlib import Path

import pytest

from penstock.broker.replicas.cordoned import check_cordoned
from penstock.config.sources import Resolved, resolve
from penstock.errors import ConfigError
from penstock.local.workers.settings import (
    advertised_endpoints,
    check_ranges,
    worker_endpoints,
    worker_settings,
)


def resolved(**settings: str) -> Resolved:
    pairs = [f"{name.replace('_', '.')}={text}" for name, text in settings.items()]
    return resolve(defaults={"listeners": "PLAINTEXT://127.0.0.1:9092"}, pairs=pairs, strict=True)


def ports(workers: int, **settings: str) -> list[list[int]]:
    found = worker_endpoints(resolved(**settings).config.listener, workers)
    return [[each.port for each in endpoints] for endpoints in found]


def advertised(workers: int, **settings: str) -> list[str]:
    listener = resolved(**settings).config.listener
    shared = {each.listener: each.port for each in listener.endpoints()}
    return [
        ",".join(
            map(
                str,
                advertised_endpoints(
                    listener, shared, {each.listener: each.port for each in own}, index
                ),
            )
        )
        for index, own in enumerate(worker_endpoints(listener, workers))
    ]


def test_workers_listen_behind_the_shared_port() -> None:
    assert ports(3) == [[9093], [9094], [9095]]
    assert ports(2, listeners="PLAINTEXT://:0") == [[0], [0]]


def test_listeners_whose_port_ranges_overlap_are_refused() -> None:
    near = {
        "listeners": "IN://:9092,OUT://:9094",
        "listener_security_protocol_map": "IN:PLAINTEXT,OUT:PLAINTEXT",
        "inter_broker_listener_name": "IN",
    }
    assert ports(1, **near) == [[9093, 9095]]
    with pytest.raises(ConfigError, match=r"workers of IN need the 2 ports .* OUT uses port 9094"):
        ports(2, **near)


def test_a_port_without_room_for_the_workers_is_refused() -> None:
    with pytest.raises(ConfigError, match="leaves no 4 ports behind it"):
        ports(4, listeners="PLAINTEXT://:65533")
    assert ports(2, listeners="PLAINTEXT://:65533") == [[65534], [65535]]


def test_workers_advertise_their_own_ports() -> None:
    assert advertised(2) == ["PLAINTEXT://127.0.0.1:9093", "PLAINTEXT://127.0.0.1:9094"]


def test_advertised_ports_count_up_from_the_given_one() -> None:
    """As behind a router that forwards 19092-19094 to 9092-9094."""
    reported = advertised(2, advertised_listeners="PLAINTEXT://broker.example:19092")
    assert reported == ["PLAINTEXT://broker.example:19093", "PLAINTEXT://broker.example:19094"]


def test_an_advertised_range_is_used_as_written() -> None:
    reported = advertised(2, advertised_listeners="PLAINTEXT://[fe80::1]:7001-7002")
    assert reported == ["PLAINTEXT://[fe80::1]:7001", "PLAINTEXT://[fe80::1]:7002"]


def test_a_range_names_one_port_for_each_worker() -> None:
    listener = resolved(advertised_listeners="PLAINTEXT://h:7001-7004").config.listener
    check_ranges(listener, 4)
    with pytest.raises(ConfigError, match="PLAINTEXT has 4 ports for 3 workers"):
        check_ranges(listener, 3)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("listeners", "PLAINTEXT://:9092-9094"),
        ("advertised_listeners", "PLAINTEXT://h:9094-9092"),
        ("advertised_listeners", "PLAINTEXT://h:9094-99999"),
    ],
)
def test_an_invalid_range_is_refused(setting: str, text: str) -> None:
    with pytest.raises(ConfigError, match=r"listeners is 'PLAINTEXT"):
        resolved(**{setting: text})


def settings_of(index: int, base: Resolved) -> Resolved:
    (own,) = worker_endpoints(base.config.listener, index + 1)[index:]
    return worker_settings(
        base,
        index,
        listeners=own,
        advertised=own,
        log_dirs=[Path("/a"), Path("/b")],
    )


def test_the_first_worker_has_the_broker_id_and_each_its_folders() -> None:
    base = resolved(broker_id="7", penstock_http_listen="0.0.0.0:9100")
    first, second = settings_of(0, base), settings_of(1, base)
    assert first.config.identity.number == 7
    assert second.config.identity.number is None
    assert second.config.identity.directories == ("/a/worker.1", "/b/worker.1")
    assert second.config.metrics.penstock_http_listen == "0.0.0.0:0"
    assert str(second.config.listener.endpoints()[0]) == "PLAINTEXT://127.0.0.1:9094"


def test_a_cordoned_directory_applies_to_each_workers_part() -> None:
    second = settings_of(1, resolved(cordoned_log_dirs="/b")).config.identity
    assert second.cordoned_log_dirs == ("/b/worker.1",)
    check_cordoned(second)
    everything = settings_of(1, resolved(cordoned_log_dirs="*")).config.identity
    assert everything.cordoned_log_dirs == ("*",)


def test_internal_topics_have_one_replica_by_default() -> None:
    alone = settings_of(0, resolved()).config
    assert alone.group.offsets_topic_replication_factor == 1
    assert alone.transaction.transaction_state_log_replication_factor == 1
    assert alone.share.share_coordinator_state_topic_replication_factor == 1
    assert alone.share.share_coordinator_state_topic_min_isr == 1
    asked = settings_of(0, resolved(offsets_topic_replication_factor="2")).config
    assert asked.group.offsets_topic_replication_factor == 2
    cluster = settings_of(0, resolved(zookeeper_connect="127.0.0.1:2181")).config
    assert cluster.group.offsets_topic_replication_factor == 3
    assert cluster.controller.controlled_shutdown_enable
