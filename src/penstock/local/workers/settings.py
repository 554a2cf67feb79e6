"""Derives a worker's settings from those of the machine. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.config.broker import BrokerConfig, broker_config
from penstock.config.identity import EVERY_LOG_DIR
from penstock.config.listener import Endpoint, ListenerConfig, SecurityProtocol
from penstock.config.sources import Given, Resolved, SettingSource
from penstock.errors import ConfigError
from penstock.local.workers.layout import folder
from penstock.security.principal import ANONYMOUS, super_users

ORIGIN = "--workers"
MAX_PORT = 65535

ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""A second replica on the same machine would be lost with the first."""


def worker_endpoints(listener: ListenerConfig, workers: int) -> list[tuple[Endpoint, ...]]:
    """The endpoints of each worker: on the ports after the shared port, or on free ports if
    that is 0.
    """
    shared = listener.endpoints()
    found = [
        tuple(replace(each, port=each.port + 1 + index if each.port else 0) for each in shared)
        for index in range(workers)
    ]
    for each in shared:
        if each.port and each.port + workers > MAX_PORT:
            raise ConfigError(
                f"--workers {workers}: {each} leaves no {workers} ports behind it; use a lower port"
            )
    taken = {each.port: each for each in shared if each.port}
    for endpoints in found:
        for each in endpoints:
            other = taken.setdefault(each.port, each) if each.port else each
            if other.listener != each.listener:
                raise ConfigError(
                    f"--workers {workers}: the workers of {each.listener} need the {workers} ports "
                    f"behind its own, and {other.listener} uses port {each.port}: move the "
                    "listeners apart"
                )
    return found


def advertised_endpoints(
    listener: ListenerConfig, shared: Mapping[str, int], own: Mapping[str, int], index: int
) -> tuple[Endpoint, ...]:
    """The advertised endpoints of a worker. `shared` and `own` are the bound ports by listener.

    The distance between advertised and bound port is the same as for the shared port, as with a
    router that forwards a range. A configured range is used as it is.
    """
    ranges = listener.advertised_ranges()
    return tuple(
        replace(each, port=_advertised_port(each, ranges, shared, own, index))
        for each in listener.advertised()
    )


def _advertised_port(
    each: Endpoint,
    ranges: Mapping[str, range],
    shared: Mapping[str, int],
    own: Mapping[str, int],
    index: int,
) -> int:
    if each.listener in ranges:
        return ranges[each.listener][index]
    port = own[each.listener]
    if each.port:
        port += each.port - shared[each.listener]
    if not 0 < port <= MAX_PORT:
        raise ConfigError(
            f"advertised.listeners: {each} leaves worker {index} the port {port}; write a range"
        )
    return port


def check_ranges(listener: ListenerConfig, workers: int) -> None:
    for name, ports in listener.advertised_ranges().items():
        if len(ports) != workers:
            raise ConfigError(
                f"advertised.listeners: {name} has {len(ports)} ports for {workers} workers; write "
                "one port, or a range with one for each"
            )


def check_workers(config: BrokerConfig, workers: int) -> None:
    """Refuse settings that are impossible with workers, before anything changes."""
    check_ranges(config.listener, workers)
    worker_endpoints(config.listener, workers)
    access, inter_broker = config.authorization, config.listener.inter_broker()
    if (
        access.is_on
        and config.listener.protocols()[inter_broker] is SecurityProtocol.PLAINTEXT
        and not access.allow_everyone_if_no_acl_found
        and ANONYMOUS not in super_users(access.super_users)
    ):
        raise ConfigError(
            f"--workers {workers}: workers connect to each other as {ANONYMOUS}, which ACLs would "
            "refuse: add it to super.users, and let nobody else reach the listener "
            f"{inter_broker}; or let inter.broker.listener.name name one with logins"
        )


def worker_settings(
    resolved: Resolved,
    index: int,
    *,
    listeners: Sequence[Endpoint],
    advertised: Sequence[Endpoint],
    log_dirs: Sequence[Path],
) -> Resolved:
    """The settings of one worker; only the first keeps `broker.id`."""
    changed = dict(_changed(resolved, index, listeners, advertised, log_dirs))
    given = {
        **{name: each for name, each in resolved.given.items() if name not in changed},
        **{
            name: Given(name, text, SettingSource.COMMAND_LINE, ORIGIN)
            for name, text in changed.items()
            if text is not None
        },
    }
    texts = {name: each.text for name, each in given.items()}
    return Resolved(broker_config(texts), given, (), resolved.provided)


def _changed(
    resolved: Resolved,
    index: int,
    listeners: Sequence[Endpoint],
    advertised: Sequence[Endpoint],
    log_dirs: Sequence[Path],
) -> Iterator[tuple[str, str | None]]:
    """The changed settings; None removes a setting."""
    yield "listeners", ",".join(map(str, listeners))
    yield "advertised.listeners", ",".join(map(str, advertised))
    yield "controller.listener.names", None
    yield "log.dirs", ",".join(str(folder(each, index)) for each in log_dirs)
    cordoned = resolved.config.identity.cordoned_log_dirs
    if cordoned:
        yield "cordoned.log.dirs", ",".join(_own_folder(each, index) for each in cordoned)
    http = resolved.config.metrics.penstock_http_listen
    yield "penstock.http.listen", f"{http.rpartition(':')[0]}:0" if http else ""
    if index:
        yield "broker.id", None
        yield "node.id", None
    if resolved.config.zookeeper.zookeeper_connect is None:
        # All workers stop together, so there is none to move leadership to.
        yield "controlled.shutdown.enable", "false"
        yield from one_replica(resolved).items()


def _own_folder(cordoned: str, index: int) -> str:
    return cordoned if cordoned == EVERY_LOG_DIR else str(folder(Path(cordoned).absolute(), index))


def one_replica(resolved: Resolved) -> dict[str, str]:
    """Settings for one replica of internal topics, except those that were given."""
    return {name: text for name, text in ONE_REPLICA.items() if name not in resolved.given}
