"""The composition root: settings in, a running broker out, and everything stopped in order.

Three steps: `storage` opens what is on disk, `assembly` makes the parts, and here they run.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from penstock.broker.acls.authorizer import Authorizer
from penstock.broker.assembly import assemble
from penstock.broker.context import AnyHandler, Services
from penstock.broker.delegation.tokens import DelegationTokens
from penstock.broker.handlers.table import HANDLERS
from penstock.broker.handling.pieces import in_pieces_each
from penstock.broker.machine import Machine
from penstock.broker.net.certificates import Certificates
from penstock.broker.net.connection_limits import ConnectionLimits
from penstock.broker.net.key_set import follow_keys
from penstock.broker.net.protection import (
    protections,
    security_between_brokers,
)
from penstock.broker.net.request_memory import request_memory
from penstock.broker.net.routes import Routes
from penstock.broker.net.scram_salt import salt_secret
from penstock.broker.net.scram_users import ScramParametersInUse, scram_credential
from penstock.broker.net.server import Server
from penstock.broker.pages.table import BrokerPages
from penstock.broker.peers.supervision import supervised
from penstock.broker.startup.state_file import BrokerState
from penstock.broker.storage import open_storage
from penstock.client.security import no_security
from penstock.clock import Clock
from penstock.compiled import is_pure
from penstock.config.broker import BrokerConfig, broker_settings
from penstock.config.listener import Endpoint
from penstock.config.metrics import MetricsConfig
from penstock.config.sources import Resolved
from penstock.config.stored import without_effect
from penstock.coordinator.share.pruning import StatePruning
from penstock.errors import ConfigError
from penstock.http.server import Handler, serving
from penstock.log.upkeep import Upkeep
from penstock.process_start import process_start
from penstock.record.walk import NATIVE
from penstock.security.principal import super_users
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

TICK_S = 1.0
RETENTIONS_A_TICK = 20
"""How often old segments are deleted between two ticks, while there are very many."""


class RunningBroker(msgspec.Struct, frozen=True):
    """A serving broker, for the code that started it."""

    state: BrokerState
    services: Services


@asynccontextmanager
async def running(
    resolved: Resolved, directory: Path, machine: Machine | None = None
) -> AsyncIterator[RunningBroker]:
    """Serve while the block runs; when it ends, everything is on disk and released."""
    machine = machine or Machine()
    config = resolved.config
    warn_of_slow_checks()
    refuse_unserved(config)
    refuse_ranges(config)
    warn_of_no_effect(resolved)
    machine.make_directory(directory)
    protected = protections(
        config.listener.endpoints(),
        resolved.texts(),
        machine.clock,
        machine.chance,
        resolved.provided,
    )
    between_brokers = no_security
    if config.zookeeper.zookeeper_connect is not None or machine.is_worker:
        between_brokers = security_between_brokers(config.listener, resolved.texts(), protected)
    async with AsyncExitStack() as stack:
        sockets = {each: machine.bind(each, config.network) for each in config.listener.endpoints()}
        for sock in sockets.values():
            stack.callback(sock.close)
        storage = await open_storage(stack, machine, resolved, directory)
        flusher = machine.flusher(asyncio.get_running_loop())
        stack.callback(flusher.close)
        worker, checker = ThreadPoolExecutor(1, "worker"), ThreadPoolExecutor(1, "checker")
        stack.callback(worker.shutdown, cancel_futures=True)
        stack.callback(checker.shutdown, cancel_futures=True)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        addresses = advertised(config.listener.advertised(), sockets)
        authorizer = None
        if config.authorization.is_on:
            authorizer = Authorizer(
                storage.metadata,
                machine.clock,
                super_users(config.authorization.super_users),
                allow_if_none=config.authorization.allow_everyone_if_no_acl_found,
            )
            await authorizer.open()
        delegation_tokens = DelegationTokens(
            storage.metadata, config.delegation, machine.clock, machine.chance, worker
        )
        await delegation_tokens.open()
        certificates = Certificates(
            protected.values(), lambda: storage.cluster.layers.dynamic, machine.clock
        )
        await certificates.refresh()
        parts = assemble(
            storage,
            config,
            machine,
            flusher,
            worker,
            checker,
            tasks,
            addresses,
            between_brokers,
            delegation_tokens,
            authorizer,
            certificates.check,
        )
        background: list[asyncio.Task[None]] = []

        def run(loops: dict[str, Callable[[], Awaitable[None]]]) -> None:
            background.extend(
                tasks.create_task(supervised(name, each)) for name, each in loops.items()
            )

        services, member = parts.services, parts.member
        try:
            handlers: Mapping[int, AnyHandler] = HANDLERS
            if authorizer is not None:
                from penstock.broker.authorization.guarded import guarded  # late: few have ACLs

                handlers = guarded(handlers)
            routes = Routes(in_pieces_each(handlers))
            server = machine.server(
                asyncio.get_running_loop(), tasks, routes, services, machine.clock
            )
            server.protections = protected
            server.memory = request_memory(config.network.queued_max_request_bytes)
            server.max_requests = config.network.queued_max_requests
            server.limits = ConnectionLimits(
                config.quota.quota_window_num,
                config.quota.quota_window_size_seconds,
                config.listener.inter_broker(),
            )
            for each in protected.values():
                if each.sasl is not None:
                    each.sasl.find_scram_user = partial(scram_credential, storage.cluster)
                    each.sasl.scram_parameters = ScramParametersInUse(
                        lambda: storage.cluster.image.client_configs
                    )
                    each.sasl.find_token = delegation_tokens.login
                    if each.sasl.offers_scram:
                        each.sasl.salt_secret = await salt_secret(storage.metadata, machine.chance)
            stack.callback(server.close)
            storage.open_segments.shed = server.shed
            upkeep = Upkeep(
                storage.logs,
                flusher,
                lambda: storage.cluster.config.storage,
                config.replication.replica_high_watermark_checkpoint_interval_ms,
            )
            run(
                {
                    "moves between directories": services.replicas.log_dir_moves.run,
                    "upkeep": lambda: ticking(upkeep, machine.clock),
                    "idle connections": server.close_idle,
                    "certificates": certificates.follow,
                    "compaction": parts.compactor.run,
                    "share state": lambda: pruning(services),
                }
            )
            key_sets = [each.sasl.key_set for each in protected.values() if each.sasl is not None]
            if any(key_sets):
                run({"keys of tokens": lambda: follow_keys(filter(None, key_sets))})
            if authorizer is not None:
                run({"ACLs": authorizer.follow})
            if delegation_tokens.is_on:
                controller = services.control.controller
                run(
                    {
                        "delegation tokens": delegation_tokens.follow,
                        "expired delegation tokens": lambda: delegation_tokens.sweep(
                            lambda: controller.is_active
                        ),
                    }
                )
            if services.listeners.clustered:
                listen(server, sockets)  # the controller connects to a broker that joins
            background += await member.join()
            http = None
            if config.metrics.penstock_http_listen:
                pages = BrokerPages(services, server, routes, parts.peers, tasks, machine.clock)
                run(pages.loops)
                http = await serve_pages(stack, tasks, pages.table, config.metrics)
                # DescribeConfigs shows the bound address
                storage.cluster.static["penstock.http.listen"] = http
            if not services.listeners.clustered:
                listen(server, sockets)
            for name, sock in machine.shared_sockets.items():
                server.listen(sock, name)  # only now: the broker has joined its cluster
            state = broker_state(storage.broker_id, storage.cluster_id, addresses, http)
            yield RunningBroker(state, services)
            if services.listeners.clustered:
                await member.leave()
        finally:
            services.share.persister.close()
            services.share.dead_letters.close()
            for task in background:
                task.cancel()
            member.close()


async def serve_pages(
    stack: AsyncExitStack,
    tasks: asyncio.TaskGroup,
    table: dict[tuple[str, str], Handler],
    config: MetricsConfig,
) -> str:
    """Serve HTTP until the stack ends; returns the bound address."""
    host, port = config.http_address()
    page = serving(tasks, table, host, port, setting="penstock.http.listen")
    bound = await stack.enter_async_context(page)
    return f"{bound.host}:{bound.port}"


def listen(server: Server, sockets: dict[Endpoint, socket.socket]) -> None:
    for endpoint, sock in sockets.items():
        server.listen(sock, endpoint.listener)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Uvloop's loop if it is installed; asyncio's own takes some 20 % more CPU."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def refuse_unserved(config: BrokerConfig) -> None:
    """Refuse settings that lack other settings they depend on, before anything is opened."""
    super_users(config.authorization.super_users)  # raises if an entry is malformed
    if config.zookeeper.zookeeper_set_acl and config.zookeeper.zookeeper_connect is None:
        raise ConfigError(
            "zookeeper.set.acl is true, but zookeeper.connect is not set: there are no nodes to "
            "protect"
        )


def refuse_ranges(config: BrokerConfig) -> None:
    """Refuse port ranges: each worker gets a single port from `local.workers.settings`."""
    for name in config.listener.advertised_ranges():
        raise ConfigError(
            f"advertised.listeners: {name} has a range of ports, which is for serve --workers"
        )


def warn_of_slow_checks() -> None:
    """Warn that records are checked in Python, without the C extension."""
    if not NATIVE:
        why = "PENSTOCK_PURE is set" if is_pure() else "installed without a C compiler"
        logger.warning("%s: each produced record costs a microsecond", why)


def warn_of_no_effect(resolved: Resolved) -> None:
    """Warn of given settings that change nothing."""
    texts = resolved.texts()
    for name, why in without_effect(texts, broker_settings()).items():
        logger.warning("%s=%s: %s", name, texts[name], why)


def advertised(
    endpoints: tuple[Endpoint, ...], sockets: dict[Endpoint, socket.socket]
) -> tuple[Endpoint, ...]:
    """The endpoints for clients: port 0 becomes the bound port, an empty host this machine."""
    ports = {each.listener: sock.getsockname()[1] for each, sock in sockets.items()}
    return tuple(
        replace(
            each,
            host=each.host or socket.getfqdn(),
            port=each.port or ports[each.listener],
        )
        for each in endpoints
    )


def broker_state(
    broker_id: BrokerId, cluster_id: str, addresses: tuple[Endpoint, ...], http: str | None
) -> BrokerState:
    advertised = {each.listener: f"{each.host}:{each.port}" for each in addresses}
    first = next(iter(advertised.values()))
    pid = os.getpid()
    began = process_start(pid) or ""
    return BrokerState(pid, began, broker_id, cluster_id, first, advertised, http)


async def pruning(services: Services) -> None:
    state = StatePruning(services.share.coordinator, lambda: services.cluster.image.topic_names)
    while True:
        interval_ms = services.config.share.share_coordinator_state_topic_prune_interval_ms
        await asyncio.sleep(interval_ms / 1000)
        state.prune()


async def ticking(upkeep: Upkeep, clock: Clock) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        has_more = upkeep.tick(clock.now_ms(), clock.monotonic_ms())
        for _ in range(RETENTIONS_A_TICK):
            if not has_more:
                break
            await asyncio.sleep(TICK_S / RETENTIONS_A_TICK)
            has_more = upkeep.retain(clock.now_ms())
