"""`serve --workers N`: opens what the processes share, and runs them."""

import gc
import logging
import os
import random
import resource
import signal
import socket
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from penstock.broker.app import advertised
from penstock.broker.net.protection import protections, security_between_brokers
from penstock.broker.net.server import bind
from penstock.broker.startup.file_limit import raised_file_limit
from penstock.broker.startup.state_file import FILE_NAME as STATE_FILE
from penstock.broker.startup.state_file import (
    BrokerState,
    WorkerState,
    remove_state,
    write_state,
)
from penstock.clock import SystemClock
from penstock.config.metrics import MetricsConfig
from penstock.config.sources import Resolved
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.http.server import bound
from penstock.local.workers.child import Channel
from penstock.local.workers.layout import folder
from penstock.local.workers.settings import (
    advertised_endpoints,
    one_replica,
    worker_endpoints,
    worker_settings,
)
from penstock.local.workers.store_process import StoreProcess, run_store
from penstock.local.workers.supervisor import Supervisor
from penstock.local.workers.warm import warm
from penstock.local.workers.worker import Worker, run_worker
from penstock.metadata.shared.connection import listening
from penstock.metadata.tree import FILE_NAME as STORE_FILE
from penstock.process_start import process_start

logger = logging.getLogger(__name__)

STORE = "metadata store"
SOCKET_NAME = "store.sock"
SOCKET_PATH_BYTES = 100
"""A little less than the system's limit, 104 or 108."""
OWN_FILES = 64
"""Open files of a process, besides the sockets of workers."""


def check_file_limit(workers: int, listeners: int) -> None:
    limit = raised_file_limit()
    needed = OWN_FILES + workers * (listeners + 2)
    if needed > limit:
        raise ConfigError(
            f"--workers {workers}: {needed} files would be open in their supervisor, and the limit "
            f"is {limit}: raise it (ulimit -n), or start fewer"
        )


def check_process_limit(workers: int) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and workers + 2 > soft:
        raise ConfigError(
            f"--workers {workers}: the limit of processes is {soft}: raise it (ulimit -u), or "
            "start fewer"
        )


def check_start(resolved: Resolved, workers: int) -> None:
    """Refuse too low limits, unusable keys and ports in use, before a directory is laid out for
    another number of workers.
    """
    config, texts = resolved.config, resolved.texts()
    endpoints = config.listener.endpoints()
    protected = protections(endpoints, texts, SystemClock(), random.SystemRandom())
    wanted = [*endpoints]
    if workers > 1:
        check_file_limit(workers, len(endpoints))
        check_process_limit(workers)
        security_between_brokers(config.listener, texts, protected)
        wanted += chain.from_iterable(worker_endpoints(config.listener, workers))
    with ExitStack() as stack:
        for each in wanted:
            stack.callback(bind(each, config.network).close)
        bind_http(stack, config.metrics)


def bind_http(stack: ExitStack, config: MetricsConfig) -> socket.socket | None:
    if not config.penstock_http_listen:
        return None
    sock = bound("penstock.http.listen", *config.http_address())
    sock.settimeout(0)
    stack.callback(sock.close)
    return sock


def serve_workers(
    resolved: Resolved,
    directory: Path,
    workers: int,
    stopping: Sequence[signal.Signals],
    log_as: Callable[[str], None],
    on_ready: Callable[[BrokerState], object],
) -> None:
    """Serve until a signal to stop. The caller holds the directory, and has laid it out for these
    workers.

    `log_as` is called first in each process, with its name.
    """
    machine = _Machine(resolved, directory, workers, log_as)
    with ExitStack() as stack:
        machine.open(stack)
        supervisor = Supervisor(machine.processes(), stopping, machine.update_state)
        machine.supervisor = supervisor
        names = [f"worker {index}" for index in range(workers)]
        warm()
        gc.freeze()  # so that collections in a child do not write to shared pages
        try:
            if supervisor.start([STORE, *names]):  # workers wait for the store
                state = machine.write_state()
                ready = counted(workers, "worker is", "workers are")
                logger.info("%s ready behind %s", ready, state.bootstrap)
                on_ready(state)
                supervisor.run()
        finally:
            try:
                supervisor.stop(names)
                supervisor.stop([STORE])
            finally:
                machine.remove_state()


class _Machine:
    """The sockets and settings of all processes."""

    def __init__(
        self, resolved: Resolved, directory: Path, workers: int, log_as: Callable[[str], None]
    ) -> None:
        self._resolved, self._directory, self._count = resolved, directory, workers
        self._log_as = log_as
        self._written: BrokerState | None = None
        self._workers: list[Worker] = []
        self.supervisor: Supervisor

    def open(self, stack: ExitStack) -> None:
        """Bind all ports first, so that one in use is reported before anything starts."""
        config = self._resolved.config
        listener, network = config.listener, config.network
        own_endpoints = worker_endpoints(listener, self._count)
        shared = {each: bind(each, network) for each in listener.endpoints()}
        for sock in shared.values():
            stack.callback(sock.close)
        self._shared = advertised(listener.advertised(), shared)
        ports = {each.listener: sock.getsockname()[1] for each, sock in shared.items()}
        own = []
        for endpoints in own_endpoints:
            own.append({each: bind(each, network) for each in endpoints})
            for sock in own[-1].values():
                stack.callback(sock.close)
        self._open_store(stack)
        log_dirs = [Path(each).absolute() for each in config.identity.directories]
        for index, sockets in enumerate(own):
            bound = {each.listener: sock.getsockname()[1] for each, sock in sockets.items()}
            self._workers.append(
                Worker(
                    index,
                    worker_settings(
                        self._resolved,
                        index,
                        listeners=[replace(each, port=bound[each.listener]) for each in sockets],
                        advertised=advertised_endpoints(listener, ports, bound, index),
                        log_dirs=log_dirs,
                    ),
                    folder(log_dirs[0], index),
                    self._directory,
                    self._store_path,
                    {each.listener: sock for each, sock in sockets.items()},
                    {each.listener: sock for each, sock in shared.items()},
                )
            )
        self._log_replicas()

    def _open_store(self, stack: ExitStack) -> None:
        self._store_path: Path | None = None
        file = sock = None
        if self._resolved.config.zookeeper.zookeeper_connect is None:
            file = self._directory / STORE_FILE
            self._store_path = self._socket_path(stack)
            sock = listening(self._store_path)
            stack.callback(sock.close)
            stack.callback(self._store_path.unlink, missing_ok=True)
        self._http = bind_http(stack, self._resolved.config.metrics)
        self._store = StoreProcess(self._directory, file, sock, self._http)

    def _socket_path(self, stack: ExitStack) -> Path:
        """The path of the store's socket: in the data directory, unless that path is too long."""
        path = (self._directory / SOCKET_NAME).absolute()
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            return path
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-"))
        return Path(folder) / SOCKET_NAME

    def _log_replicas(self) -> None:
        alone = self._resolved.config.zookeeper.zookeeper_connect is None
        if alone and (one := one_replica(self._resolved)):
            logger.info(
                "internal topics get one replica, since all workers are on this machine: %s",
                ", ".join(f"{name}={text}" for name, text in one.items()),
            )

    def processes(self) -> dict[str, Callable[[Channel], None]]:
        def named(name: str, run: Callable[[Channel], None]) -> Callable[[Channel], None]:
            def logged(channel: Channel) -> None:
                self._log_as(name)
                run(channel)

            return logged

        workers = {each.name: named(each.name, partial(run_worker, each)) for each in self._workers}
        return {STORE: named(STORE, partial(run_store, self._store)), **workers}

    def write_state(self) -> BrokerState:
        """Write `broker.json`, with which others find the broker."""
        found = []
        for each in self._workers:
            state, restarts = self.supervisor.state(each.name)
            if state is not None:
                found.append(
                    WorkerState(
                        each.index,
                        state.pid,
                        state.broker_id,
                        state.listeners,
                        state.http,
                        restarts,
                    )
                )
        first, _ = self.supervisor.state(self._workers[0].name)
        assert first is not None
        addresses = {each.listener: f"{each.host}:{each.port}" for each in self._shared}
        pid = os.getpid()
        http = None
        if self._http is not None:
            host, port = self._http.getsockname()[:2]
            http = f"{host}:{port}"
        state = BrokerState(
            pid,
            process_start(pid) or "",
            first.broker_id,
            first.cluster_id,
            next(iter(addresses.values())),
            addresses,
            http,
            tuple(found),
        )
        write_state(self._directory, state)
        self._written = state
        return state

    def update_state(self) -> None:
        """Update `broker.json`. On a full disk, commands and pages see the former process until
        the next update.
        """
        try:
            self.write_state()
        except OSError as error:
            logger.error("%s: cannot be updated: %s", self._directory / STATE_FILE, error.strerror)

    def remove_state(self) -> None:
        if self._written is not None:
            with suppress(OSError):
                remove_state(self._directory, self._written)
