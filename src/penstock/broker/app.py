"""The composition root: settings in, a running broker out, and everything stopped in order.

Here alone parts meet: each is made with just what it uses, and `Services` hands them to handlers.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from penstock.broker.cluster import Cluster
from penstock.broker.context import Services
from penstock.broker.coordination.coordinator_log import PartitionCoordinatorLog
from penstock.broker.coordination.coordinators import (
    Coordinators,
    group_coordinator,
    transaction_coordinator,
)
from penstock.broker.fetch_sessions import FetchSessions
from penstock.broker.handlers.table import HANDLERS
from penstock.broker.machine import Machine
from penstock.broker.net.dispatch import Routes
from penstock.broker.net.server import Server, reason
from penstock.broker.pages.group_metrics import group_metrics, places_elsewhere
from penstock.broker.pages.loop_lag import LoopLag
from penstock.broker.pages.metrics import table as metrics_table
from penstock.broker.pages.rebalances import rebalances
from penstock.broker.pages.replicas import replicas
from penstock.broker.peers.connections import PeerConnections
from penstock.broker.peers.log_ends import LogEnds
from penstock.broker.peers.place import Place
from penstock.broker.replicas.environment import environment
from penstock.broker.replicas.local import LocalBroker
from penstock.broker.replicas.throttles import LeaderThrottle
from penstock.broker.startup import decision, identity, possession
from penstock.broker.startup.file_limit import shares
from penstock.broker.startup.process_start import process_start
from penstock.broker.startup.state_file import BrokerState
from penstock.broker.supervision import supervised
from penstock.broker.transaction.marker_outbox import marker_outbox
from penstock.broker.transaction.markers import ClusterMarkers, MarkerLogs
from penstock.broker.transaction.producer_ids import ProducerIdPool
from penstock.broker.transaction.verification import PendingVerifications
from penstock.broker.transaction.verification_outbox import verification_outbox
from penstock.broker.transaction.verifier import TransactionVerifier
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.config.broker import BrokerConfig, broker_settings
from penstock.config.listener import Endpoint, refuse_protected
from penstock.config.setting import parse
from penstock.config.sources import Resolved
from penstock.controller import membership
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import ConfigError
from penstock.http.health import healthz, readyz
from penstock.http.prometheus import metrics
from penstock.http.server import serving
from penstock.log.compaction.compactor import Compactor
from penstock.log.open_segments import OpenSegments
from penstock.log.store import LogStore
from penstock.log.upkeep import Upkeep
from penstock.metadata.reader import read_image
from penstock.metadata.store import MetadataStore
from penstock.record.compression import Codec
from penstock.record.walk import NATIVE
from penstock.replication.log_dir_moves import LogDirMoves
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, Uuid

logger = logging.getLogger(__name__)

TICK_S = 1.0
SCRATCH_BYTES = 1 << 20
"""Most batches fit, decompressed; larger ones get memory of their own."""


class RunningBroker(msgspec.Struct, frozen=True):
    """A broker that serves, for whoever started it."""

    state: BrokerState
    services: Services


@asynccontextmanager
async def running(
    resolved: Resolved, directory: Path, machine: Machine | None = None
) -> AsyncIterator[RunningBroker]:
    """Serve for as long as the block lasts; at its end everything is on disk and released."""
    machine = machine or Machine()
    files_shared = shares(machine.file_limit())
    clock, files, chance = machine.clock, machine.files(files_shared), machine.chance
    config, loop = resolved.config, asyncio.get_running_loop()
    if not NATIVE:
        logger.warning("installed without a C compiler: each produced record costs a microsecond")
    log_dirs = [Path(each).absolute() for each in config.identity.directories]
    refuse_unserved(config)
    warn_of_no_effect(resolved)
    machine.make_directory(directory)
    async with AsyncExitStack() as stack:
        sockets = {each: machine.bind(each, config.network) for each in config.listener.endpoints()}
        for sock in sockets.values():
            stack.callback(sock.close)
        metadata = await stack.enter_async_context(
            machine.open_store(config.zookeeper, directory, files, clock)
        )
        open_segments = OpenSegments(files_shared.segments)
        logs = LogStore(
            files,
            log_dirs,
            lambda topic: cluster.topic_config(topic),  # noqa: PLW0108  made below
            boot_id=machine.boot_id(),
            open_segments=open_segments,
        )
        stack.callback(possession.unlock, logs)
        start = await possession.decided(logs, metadata, config, directory)
        await membership.prepare_tree(metadata)
        broker_id = start.broker_id
        if broker_id is None:
            broker_id = await fresh_broker_id(config, metadata)
        static = {**resolved.texts(), "broker.id": f"{broker_id}", "node.id": f"{broker_id}"}
        cluster_id = await membership.cluster_id(
            metadata, start.cluster_id, Uuid(chance.randbytes(16))
        )
        cluster = Cluster(broker_id, static, (await read_image(metadata)).without_deleted())
        logs.load(clock.now_ms())
        lost = decision.lost_replicas(cluster.image, broker_id, logs.logs)
        if lost:
            logger.warning(
                "there is no log of %d partitions in sync here, %s among them", len(lost), min(lost)
            )
        stack.callback(logs.close)
        check_directories(logs)
        is_alone = config.zookeeper.zookeeper_connect is None
        await possession.tie(logs, metadata, broker_id, cluster_id, chance, is_alone=is_alone)
        flusher = machine.flusher(loop)
        stack.callback(flusher.close)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        compactor = Compactor(files, logs.logs.values, clock, lambda: cluster.config.storage)
        logs.before_create = lambda log_dir, where: compactor.forget(log_dir, [where])

        waiters = Waiters(loop)
        addresses = advertised(config.listener.advertised(), sockets)
        partitions = Partitions(
            broker_id,
            logs,
            environment(
                cluster,
                waiters,
                clock,
                propose=lambda proposal: place.propose(proposal),  # noqa: PLW0108  made below
            ),
        )
        moves = LogDirMoves(
            partitions,
            flusher,
            clock,
            on_replaced=lambda log: compactor.truncated(log, 0),
            rate=lambda: cluster.config.replication.replica_alter_log_dirs_io_max_bytes_per_second,
            at_once=config.replication.num_replica_alter_log_dirs_threads,
        )
        groups = group_coordinator(config.group, cluster, loop, clock, waiters)
        peers = PeerConnections(broker_id, cluster)
        markers_elsewhere = marker_outbox(tasks, peers.to)
        verifications_elsewhere = verification_outbox(tasks, peers.to)
        verifications = PendingVerifications()
        markers = MarkerLogs(partitions, groups, waiters, flusher, clock, verifications)
        transactions = transaction_coordinator(
            config.transaction,
            cluster,
            loop,
            clock,
            waiters,
            ClusterMarkers(
                broker_id,
                cluster,
                partitions,
                markers,
                waiters,
                markers_elsewhere.post,
            ),
        )
        verifier = TransactionVerifier(
            broker_id,
            cluster,
            partitions,
            transactions,
            waiters,
            verifications,
            verifications_elsewhere.post,
        )
        codecs = {CONSUMER_OFFSETS: Codec(config.group.offsets_topic_compression_codec)}
        coordinators = Coordinators(
            {CONSUMER_OFFSETS: groups.runtime, TRANSACTION_STATE: transactions.runtime},
            lambda partition: PartitionCoordinatorLog(
                partition,
                flusher,
                waiters,
                codecs.get(partition.topic_partition.topic, Codec.NONE),
            ),
            groups.partitions_deleted,
            (groups.partition_count, transactions.partition_count),
        )
        place = Place(
            broker_id,
            metadata,
            cluster,
            partitions,
            tasks,
            peers,
            addresses=addresses,
            make_local=lambda copying, alive: LocalBroker(
                broker_id,
                cluster,
                partitions,
                copying,
                waiters,
                compactor,
                coordinators,
                clock,
                alive,
            ),
            outboxes=(markers_elsewhere, verifications_elsewhere),
            before_cut=compactor.truncated,
            page_cache_lost=bool(lost) or any(each.may_lack_records for each in logs.online),
            clock=clock,
            chance=chance,
        )
        logs.on_offline = lambda log_dir, _: place.directory_failed(log_dir.path)
        background: list[asyncio.Task[None]] = []
        try:
            services = Services(
                broker_id=broker_id,
                served=frozenset(HANDLERS),
                clustered=config.zookeeper.zookeeper_connect is not None,
                inter_broker_listener=config.listener.inter_broker(),
                cluster=cluster,
                controller=place.controller,
                link=place.link,
                orders=place.orders,
                producer_ids=ProducerIdPool(place.link.next_producer_id_block),
                groups=groups,
                transactions=transactions,
                verifier=verifier,
                markers=markers,
                partitions=partitions,
                log_dir_moves=moves,
                waiters=waiters,
                flusher=flusher,
                fetch_sessions=FetchSessions(
                    config.network.max_incremental_fetch_session_cache_slots,
                    lambda: chance.randrange(1, 2**31),
                ),
                leader_throttle=LeaderThrottle(broker_id, cluster, clock.monotonic_ms),
                encoded_topics={},
                file_shares=files_shared,
                scratch=bytearray(SCRATCH_BYTES),
            )
            routes = Routes(HANDLERS)
            server = machine.server(loop, tasks, routes, services, clock)
            upkeep = Upkeep(
                logs,
                flusher,
                lambda: cluster.config.storage,
                config.replication.replica_high_watermark_checkpoint_interval_ms,
            )
            stack.callback(server.close)
            open_segments.shed = server.shed
            background += [
                tasks.create_task(supervised(name, run))
                for name, run in (
                    ("moves between directories", moves.run),
                    ("upkeep", lambda: ticking(upkeep, clock)),
                    ("idle connections", server.close_idle),
                    ("compaction", compactor.run),
                )
            ]
            if services.clustered:
                listen(server, sockets)  # the controller speaks to who has joined
            background += await place.take()
            http = None
            if config.metrics.penstock_http_listen:
                host, port = config.metrics.http_address()
                ends = LogEnds(tasks, peers.to, lambda: places_elsewhere(services))
                if services.clustered:
                    background.append(tasks.create_task(supervised("log ends", ends.run)))
                lag = LoopLag(clock)
                background.append(tasks.create_task(supervised("loop lag", lag.run)))
                web = {
                    ("GET", "/healthz"): healthz,
                    ("GET", "/readyz"): readyz({"log directories": lambda: bool(logs.online)}),
                    ("GET", "/groups/rebalances"): rebalances(groups),
                    ("GET", "/replicas"): replicas(broker_id, partitions),
                    ("GET", "/metrics"): metrics(
                        metrics_table(services, server, routes, lag)
                        | group_metrics(services, clock, ends.get)
                    ),
                }
                try:
                    bound = await stack.enter_async_context(serving(tasks, web, host, port))
                except OSError as error:
                    raise ConfigError(
                        f"penstock.http.listen: cannot listen on {host or '*'}:{port}: "
                        f"{reason(error)}"
                    ) from None
                http = f"{bound.host}:{bound.port}"
                static["penstock.http.listen"] = http  # DescribeConfigs tells which port it took
            if not services.clustered:
                listen(server, sockets)
            yield RunningBroker(state(broker_id, cluster_id, addresses, http), services)
            if services.clustered:
                await place.leave()
        finally:
            for task in background:
                task.cancel()
            place.close()


async def fresh_broker_id(config: BrokerConfig, metadata: MetadataStore) -> BrokerId:
    """A number for a broker that was given none: a broker alone is the first."""
    if config.zookeeper.zookeeper_connect is None:
        return identity.FIRST_BROKER
    if not config.identity.broker_id_generation_enable:
        raise ConfigError("broker.id is not set, and broker.id.generation.enable is false")
    return await membership.new_broker_id(metadata, config.identity.reserved_broker_max_id)


def listen(server: Server, sockets: dict[Endpoint, socket.socket]) -> None:
    for endpoint, sock in sockets.items():
        server.listen(sock, endpoint.listener)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Uvloop's where it is installed; asyncio's own takes some 20 % more CPU."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def refuse_unserved(config: BrokerConfig) -> None:
    """What cannot be had yet is refused: nobody may think that it is there."""
    refuse_protected(config.listener.endpoints())
    if config.zookeeper.zookeeper_set_acl:
        raise ConfigError("zookeeper.set.acl: nodes are not protected yet; set it to false")


def warn_of_no_effect(resolved: Resolved) -> None:
    """Say which of the settings that were given change nothing."""
    known = broker_settings()
    for name, text in resolved.texts().items():
        found = known.get(name)
        if found is not None and found.without_effect and parse(found, text) != found.default:
            logger.warning("%s=%s: %s", name, text, found.doc)


def check_directories(logs: LogStore) -> None:
    """A broker needs one log directory that works; one that is in use is told as such."""
    if not logs.online:
        reasons = "; ".join(f"{each.path}: {each.failure}" for each in logs.dirs)
        raise ConfigError(f"log.dirs: no directory can be used: {reasons}")


def advertised(
    endpoints: tuple[Endpoint, ...], sockets: dict[Endpoint, socket.socket]
) -> tuple[Endpoint, ...]:
    """What to tell clients: a port that was free, and this machine's name for every interface."""
    ports = {each.listener: sock.getsockname()[1] for each, sock in sockets.items()}
    return tuple(
        replace(
            each,
            host=each.host or socket.getfqdn(),
            port=each.port or ports[each.listener],
        )
        for each in endpoints
    )


def state(
    broker_id: BrokerId, cluster_id: str, addresses: tuple[Endpoint, ...], http: str | None
) -> BrokerState:
    told = {each.listener: f"{each.host}:{each.port}" for each in addresses}
    first = next(iter(told.values()))
    pid = os.getpid()
    began = process_start(pid) or ""
    return BrokerState(pid, began, broker_id, cluster_id, first, told, http)


async def ticking(upkeep: Upkeep, clock: Clock) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        upkeep.tick(clock.now_ms(), clock.monotonic_ms())
