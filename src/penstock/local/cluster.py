"""A local cluster in one directory: its plan, and its processes.

`cluster.json` holds both. Starting the cluster again starts what is down, with its old data.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from penstock.broker.startup.state_file import FILE_NAME as BROKER_FILE
from penstock.broker.startup.state_file import read_state
from penstock.config.sources import resolve
from penstock.errors import ConfigError
from penstock.local import zookeeper
from penstock.local.format_version import refuse_newer
from penstock.local.process import StartedProcess, end, last_line, polls, start

FILE_NAME = "cluster.json"
VERSION = 1
START_S = 60.0
STOP_S = 30.0
FIRST_ADDRESS = 11


class ClusterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster as requested: size, ports, ZooKeeper and settings."""

    version: int = VERSION
    brokers: int
    port: int
    zookeeper: str
    """ZooKeeper's address, without the chroot."""
    zookeeper_port: int | None = None
    """The port of the cluster's own ZooKeeper; None if an external one is used."""
    chroot: str = ""
    own_addresses: bool = False
    settings: dict[str, str] = {}

    def address(self, broker: int) -> str:
        host = f"127.0.0.{FIRST_ADDRESS + broker}" if self.own_addresses else "127.0.0.1"
        return f"{host}:{self.port + broker}"

    @property
    def bootstrap(self) -> str:
        return ",".join(self.address(broker) for broker in range(self.brokers))

    @property
    def connect(self) -> str:
        return f"{self.zookeeper}{self.chroot}"


class _File(msgspec.Struct, frozen=True, kw_only=True):
    plan: ClusterPlan
    zookeeper: StartedProcess | None = None
    brokers: dict[int, StartedProcess] = {}


class _RawPlan(msgspec.Struct, frozen=True):
    plan: msgspec.Raw


class LocalCluster:
    """The cluster in a directory. Only one command at a time may work on it."""

    def __init__(self, directory: Path, file: _File, *, tied: bool = False) -> None:
        self.directory, self._file, self._tied = directory, file, tied

    @classmethod
    def find(cls, directory: Path, *, tied: bool = False) -> "LocalCluster | None":
        path = directory / FILE_NAME
        if not path.exists():
            return None
        try:
            data = path.read_bytes()
            refuse_newer(msgspec.json.decode(data, type=_RawPlan).plan, path, VERSION)
            file = msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from None
        return cls(directory, file, tied=tied)

    @classmethod
    def create(cls, directory: Path, plan: ClusterPlan, *, tied: bool = False) -> "LocalCluster":
        """A new cluster; if `tied`, its processes end with the one that started them."""
        cluster = cls(directory, _File(plan=plan), tied=tied)
        cluster.warnings()  # raises for wrong settings before anything is saved
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--dir {directory}: {error.strerror}") from None
        cluster._save()
        return cluster

    @property
    def plan(self) -> ClusterPlan:
        return self._file.plan

    def change(self, *, brokers: int | None = None, settings: Mapping[str, str] = {}) -> None:
        """Add brokers, or change the settings of those that start from now on."""
        plan = self.plan
        if brokers is not None and brokers < plan.brokers:
            raise ConfigError(
                f"--brokers {brokers}: the cluster in {self.directory} has {plan.brokers} brokers; "
                "it can only grow"
            )
        plan = msgspec.structs.replace(
            plan, brokers=brokers or plan.brokers, settings={**plan.settings, **settings}
        )
        changed = msgspec.structs.replace(self._file, plan=plan)
        LocalCluster(self.directory, changed).warnings()
        self._file = changed
        self._save()

    def warnings(self) -> tuple[str, ...]:
        """The warnings that its brokers would log; raises for settings that they would reject."""
        pairs = [f"{name}={text}" for name, text in self._settings(0).items()]
        return resolve(environ=os.environ, pairs=pairs).warnings

    def start(self, only: int | None = None) -> None:
        """Start what is down, or just one broker, and wait until it is ready.

        On failure, ends what it has started; what ran before keeps running.
        """
        plan = self.plan
        if only is not None:
            self._check(only)
        wanted = range(plan.brokers) if only is None else [only]
        starting = [broker for broker in wanted if not self.is_running(broker)]
        ran_before = self.zookeeper_pid is not None
        try:
            if plan.zookeeper_port is not None:
                self._start_zookeeper(plan.zookeeper_port)
            for broker in starting:
                started = start(self._serve(broker), self._output(broker), tied=self._tied)
                self._remember(broker, started)
            for broker in starting:
                self._wait_until_ready(broker)
        except BaseException:
            self._end_again(starting, zookeeper=not ran_before)
            raise

    def _end_again(self, brokers: Sequence[int], *, zookeeper: bool) -> None:
        """Kill the processes. A controlled shutdown could hang without a controller."""
        for broker in brokers:
            if broker in self._file.brokers:
                end(self._file.brokers[broker], kill=True, patience_s=STOP_S)
                (self.folder(broker) / BROKER_FILE).unlink(missing_ok=True)
        if zookeeper and self._file.zookeeper is not None:
            end(self._file.zookeeper, kill=True, patience_s=STOP_S)

    def _start_zookeeper(self, port: int) -> None:
        if self._file.zookeeper is None or not self._file.zookeeper.is_alive():
            folder = self.directory / "zookeeper"
            command = zookeeper.command(folder, port)
            started = start(command, folder / "output", tied=self._tied, bounded=True)
            self._file = msgspec.structs.replace(self._file, zookeeper=started)
            self._save()
        for _ in polls(START_S):
            if zookeeper.answers(port):
                return
            if not self._file.zookeeper or not self._file.zookeeper.is_alive():
                break
        output = self.directory / "zookeeper" / "output"
        raise ConfigError(f"ZooKeeper did not start: {last_line(output)} (see {output})")

    def _settings(self, broker: int) -> dict[str, str]:
        return {
            "broker.id": str(broker),
            "zookeeper.connect": self.plan.connect,
            "listeners": f"PLAINTEXT://{self.plan.address(broker)}",
            **self.plan.settings,
        }

    def _serve(self, broker: int) -> list[str]:
        command = [sys.executable, "-P", "-m", "penstock", "serve"]
        command += ["--dir", str(self.folder(broker))]
        command += ["--log-file", str(self._output(broker))]  # a log file is rotated
        for name, value in self._settings(broker).items():
            command += ["--set", f"{name}={value}"]
        return command

    def _wait_until_ready(self, broker: int) -> None:
        started = self._file.brokers[broker]
        late = f"it was not ready within {START_S:.0f} s"
        for _ in polls(START_S):
            state = read_state(self.folder(broker))
            if state is not None and state.pid == started.pid:
                return
            if not started.is_alive():
                late = last_line(self._output(broker))
                break
        raise ConfigError(
            f"broker {broker} did not start: {late} (see {self._output(broker)}); "
            "the processes started with it were ended"
        )

    def stop(self, broker: int | None = None, *, kill: bool = False) -> None:
        """End one broker, or all of them and then ZooKeeper."""
        if broker is not None:
            self._check(broker)
        for number, started in self._file.brokers.items():
            if broker in {None, number}:
                end(started, kill=kill, patience_s=STOP_S)
                (self.folder(number) / BROKER_FILE).unlink(missing_ok=True)
        if broker is None and self._file.zookeeper is not None:
            end(self._file.zookeeper, kill=kill, patience_s=STOP_S)

    def forget(self) -> None:
        """Let the next start have another plan, such as other ports, unless something runs."""
        if not self.pids() and self.zookeeper_pid is None:
            (self.directory / FILE_NAME).unlink(missing_ok=True)

    def pause(self, broker: int) -> None:
        """SIGSTOP: the broker keeps its connections but does not answer, like a hung machine."""
        os.kill(self._pid(broker), signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        os.kill(self._pid(broker), signal.SIGCONT)

    def _pid(self, broker: int) -> int:
        self._check(broker)
        if not self.is_running(broker):
            raise ConfigError(f"broker {broker} is down")
        return self._file.brokers[broker].pid

    def _check(self, broker: int) -> None:
        if not 0 <= broker < self.plan.brokers:
            raise ConfigError(f"--broker {broker}: there are brokers 0 to {self.plan.brokers - 1}")

    def http(self, broker: int) -> str:
        """host:port of the broker's HTTP server."""
        state = read_state(self.folder(broker))
        if state is None or state.http is None:
            raise ConfigError(f"broker {broker} serves no HTTP: it is down, or HTTP is disabled")
        return state.http

    def is_running(self, broker: int) -> bool:
        started = self._file.brokers.get(broker)
        return started is not None and started.is_alive()

    def pids(self) -> dict[int, int]:
        """The pid of each running broker."""
        known = self._file.brokers
        return {each: known[each].pid for each in sorted(known) if known[each].is_alive()}

    @property
    def zookeeper_pid(self) -> int | None:
        started = self._file.zookeeper
        return started.pid if started is not None and started.is_alive() else None

    def folder(self, broker: int) -> Path:
        return self.directory / f"broker-{broker}"

    def _output(self, broker: int) -> Path:
        return self.folder(broker) / "output"

    def _remember(self, broker: int, started: StartedProcess) -> None:
        brokers = {**self._file.brokers, broker: started}
        self._file = msgspec.structs.replace(self._file, brokers=brokers)
        self._save()

    def _save(self) -> None:
        new = self.directory / f"{FILE_NAME}.new"
        new.write_bytes(msgspec.json.format(msgspec.json.encode(self._file)))
        new.replace(self.directory / FILE_NAME)
