"""Lays out a data directory for a number of workers, before any of them starts.

It completes what a crash left half done, checks that logs and metadata belong together, and moves
partitions. Anything impossible is refused before anything changes.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from random import Random
from shlex import join, quote

import msgspec

from penstock.broker.startup import identity
from penstock.broker.startup.decision import decide_workers
from penstock.broker.startup.known_log_dirs import write_known_log_dirs
from penstock.broker.startup.log_dir_ownership import StartRefused, stored_metadata
from penstock.clock import Clock, SystemClock
from penstock.config.broker import BrokerConfig
from penstock.controller import broker_registration
from penstock.errors import ConfigError, StorageError
from penstock.local.workers import distribution, resize
from penstock.local.workers.behind import logs_behind
from penstock.local.workers.layout import (
    FILE_NAME,
    PREFIX,
    Layout,
    Resize,
    folder,
    read_layout,
    write_layout,
)
from penstock.local.workers.metadata import holders, move_replicas
from penstock.local.workers.settings import check_workers
from penstock.log.disk import DiskFiles
from penstock.log.files import Files, replace
from penstock.log.found import IGNORED, FoundDirectory, FoundLog, last_epoch, scan_log_dir
from penstock.log.leftovers import base_offsets
from penstock.log.log_dir_owner import UNCLEAN_SHUTDOWN
from penstock.log.meta_properties import FILE_NAME as META_PROPERTIES
from penstock.log.meta_properties import MetaProperties, decode_meta_properties
from penstock.log.naming import DirectoryRole, parse_dir_name
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.reader import read_image
from penstock.metadata.tree import FILE_NAME as STORE_FILE
from penstock.metadata.tree import Tree
from penstock.types import BrokerId, Uuid, random_uuid, uuid_text

logger = logging.getLogger(__name__)


def prepare(
    directory: Path,
    config: BrokerConfig,
    workers: int | None,
    check: Callable[[int], None] = lambda _: None,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    chance: Random | None = None,
) -> int:
    """Prepare the directory; returns the number of workers: `workers`, or as many as before.

    `check` is called with that number before anything changes, and raises if the start would fail.
    """
    files, chance = files or DiskFiles(), chance or random.SystemRandom()
    layout = read_layout(directory)
    wanted = workers or (layout.resize.workers if layout.resize else layout.workers)
    log_dirs = [Path(each).absolute() for each in config.identity.directories]
    _check_layout(files, directory, layout, log_dirs)
    if wanted == 1 and layout.workers == 1 and layout.resize is None:
        return 1  # a broker alone checks its directories itself
    if wanted > 1:
        check_workers(config, wanted)
    check(wanted)
    with ExitStack() as locks:
        _lock(files, locks, log_dirs, max(layout.workers, wanted))
        preparation = _Preparation(files, directory, config, log_dirs, chance)
        try:
            if config.zookeeper.zookeeper_connect is None:
                asyncio.run(preparation.on_embedded_store(layout, wanted, clock or SystemClock()))
            else:
                preparation.on_zookeeper(layout, wanted)
        except StorageError as error:
            raise ConfigError(
                f"log.dirs: they cannot be laid out for {wanted} workers: {error}"
            ) from error
    return wanted


def _check_layout(files: Files, directory: Path, layout: Layout, log_dirs: Sequence[Path]) -> None:
    """Refuse unknown workers' folders, and partitions that no worker would serve."""
    if layout.resize:
        return
    found = [(log_dir, name) for log_dir in log_dirs for name in _folder_names(files, log_dir)]
    own = [str(log_dir / name) for log_dir, name in sorted(found) if name.startswith(PREFIX)]
    if own and layout.workers == 1:
        raise ConfigError(
            f"{own[0]} is a worker's, but {directory / FILE_NAME} knows of none: start with the "
            "--dir that these workers had; if that is lost, register their topics here (penstock "
            f"log adopt --dir {quote(str(directory))} {join(own)}); or use other log.dirs"
        )
    if layout.workers > 1:
        for log_dir, name in found:
            if parse_dir_name(name) is None:
                continue
            if not _is_replica(files, log_dir / name):
                logger.warning("%s is left as it is: no worker serves it", log_dir / name)
                continue
            above = log_dir.name.startswith(PREFIX)
            raise ConfigError(
                f"log.dirs: {log_dir / name} would not be served: {layout.workers} workers "
                f"have their partitions in folders of each log directory, {PREFIX}0 and so on: "
                + (f"name {log_dir.parent}" if above else "use another log directory")
            )


def _is_replica(files: Files, path: Path) -> bool:
    """Whether the folder has a log: names of backups and other folders may end in a number, too."""
    found = parse_dir_name(path.name)
    if found is None or found.role is not DirectoryRole.CURRENT or path.name in IGNORED:
        return False
    try:
        names = files.names(path)
    except StorageError:
        return False
    return PARTITION_METADATA in names or bool(base_offsets(names))


def _folder_names(files: Files, log_dir: Path) -> list[str]:
    """The folders of a log directory; none if it cannot be read, as its worker takes it offline."""
    try:
        if files.is_dir(log_dir):
            return [name for name in files.names(log_dir) if files.is_dir(log_dir / name)]
    except StorageError:
        pass
    return []


def _lock(files: Files, locks: ExitStack, log_dirs: Iterable[Path], workers: int) -> None:
    for path in resize.lock_names(log_dirs, workers):
        if files.is_dir(path.parent):
            locks.callback(files.lock(path))


class _Preparation:
    """The preparation steps, with ZooKeeper or the embedded store."""

    def __init__(
        self,
        files: Files,
        directory: Path,
        config: BrokerConfig,
        log_dirs: Sequence[Path],
        chance: Random,
    ) -> None:
        self._files, self._directory, self._config = files, directory, config
        self._log_dirs, self._chance = log_dirs, chance

    def on_zookeeper(self, layout: Layout, workers: int) -> None:
        """Other brokers may be running, so only whole workers are added, or removed when
        they are empty.
        """
        if layout.resize is not None:
            layout = self._moved(layout, layout.resize)
        if layout.workers == workers:
            return
        gone = range(max(workers, 1), layout.workers)
        held = resize.occupied(self._files, self._log_dirs, gone)
        if held is not None:
            raise ConfigError(
                f"--workers {workers}: {held} belongs to a worker that would go; on ZooKeeper its "
                "partitions must be moved to other brokers first (kafka-reassign-partitions.sh)"
            )
        self._moved(self._begun(layout, Resize(workers, ())), Resize(workers, ()))

    async def on_embedded_store(self, layout: Layout, workers: int, clock: Clock) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        # Sessions are kept: the workers' own starts end them, and there are no others.
        tree = Tree.open(self._directory / STORE_FILE, clock)
        try:
            store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
            await broker_registration.prepare_tree(store)
            await self._verify(store, layout)
            if layout.resize is not None:
                await self._completed(store, layout, layout.resize)
                layout = read_layout(self._directory)
            if layout.workers != workers:
                await self._resize(store, layout, workers)
            await self._record(store, workers)
            await self._mark_behind(store, workers)
            await store.close()
        finally:
            tree.close()

    async def _resize(self, store: EmbeddedStore, layout: Layout, workers: int) -> None:
        ids = await self._broker_ids(store, layout.workers)
        while len(ids) < workers:
            reserved = self._config.identity.reserved_broker_max_id
            ids.append(await broker_registration.new_broker_id(store, reserved, ids))
        by_worker = {broker: worker for worker, broker in enumerate(ids)}
        held = {
            each: [by_worker[broker] for broker in brokers if broker in by_worker]
            for each, brokers in (await holders(store)).items()
        }
        moves = distribution.moves(held, workers)
        begun = Resize(workers, tuple(ids), tuple(moves))
        await self._completed(store, self._begun(layout, begun), begun)

    def _begun(self, layout: Layout, begun: Resize) -> Layout:
        layout = msgspec.structs.replace(layout, resize=begun)
        write_layout(self._files, self._directory, layout)
        return layout

    async def _completed(self, store: EmbeddedStore, layout: Layout, begun: Resize) -> None:
        self._rename(layout, begun)
        await move_replicas(store, begun)
        self._finished(layout, begun)

    def _moved(self, layout: Layout, begun: Resize) -> Layout:
        self._rename(layout, begun)
        return self._finished(layout, begun)

    def _rename(self, layout: Layout, begun: Resize) -> None:
        for log_dir in self._log_dirs:
            if not self._files.exists(log_dir):
                self._files.make_dir(log_dir)
            unique = random_uuid(self._chance).hex
            resize.carry_out(self._files, log_dir, layout.workers, begun, unique)

    def _finished(self, layout: Layout, begun: Resize) -> Layout:
        layout = msgspec.structs.replace(layout, workers=begun.workers, resize=None)
        write_layout(self._files, self._directory, layout)
        return layout

    def _folders(self, workers: int) -> list[list[Path]]:
        if workers == 1:
            return [list(self._log_dirs)]
        return [[folder(each, worker) for each in self._log_dirs] for worker in range(workers)]

    async def _broker_ids(self, store: EmbeddedStore, workers: int) -> list[BrokerId]:
        """The broker ids of the existing workers. The first may have none yet, nor any log.

        Another one without an id has lost its folders: it is a broker that the metadata still lists
        for replicas, or one that never had any.
        """
        first = self._config.identity.number or identity.FIRST_BROKER
        stated = [
            next((each for each in map(self._stated_id, paths) if each is not None), None)
            for paths in self._folders(workers)
        ]
        ids = [None if each is None else BrokerId(each) for each in stated]
        ids[0] = BrokerId(first) if ids[0] is None else ids[0]
        held = {broker for brokers in (await holders(store)).values() for broker in brokers}
        lost = iter(sorted(held.difference(ids)))
        reserved = self._config.identity.reserved_broker_max_id
        found: list[BrokerId] = []
        for each in ids:
            known = next(lost, None) if each is None else each
            if known is None:
                known = await broker_registration.new_broker_id(store, reserved, {*held, *ids})
            found.append(known)
        return found

    def _stated_id(self, path: Path) -> int | None:
        stated = self._stated(path)
        return None if stated is None else stated.broker_id

    def _stated(self, path: Path) -> MetaProperties | None:
        meta = path / META_PROPERTIES
        if not self._files.exists(meta):
            return None
        return decode_meta_properties(self._files.read(meta), str(meta))

    async def _verify(self, store: EmbeddedStore, layout: Layout) -> None:
        """Check that logs and metadata belong together, over all workers. During a resize,
        partitions may be in their old or new places.
        """
        known = await stored_metadata(store, self._config, self._directory, is_standalone=True)
        workers = [*self._folders(layout.workers)]
        if layout.resize is not None:
            workers = [list(self._log_dirs)]
            workers += self._folders(max(layout.workers, layout.resize.workers, 2))
        found = [[self._look_into(path) for path in paths] for paths in workers]
        refused = decide_workers(
            self._with_epochs(found),
            known,
            self._config.identity.number,
            self._directory,
            is_resizing=layout.resize is not None,
        )
        if refused is not None:
            raise StartRefused(refused.why)

    def _with_epochs(self, workers: list[list[FoundDirectory]]) -> list[list[FoundDirectory]]:
        """Add the last leader epochs of partitions with several replicas."""
        count = Counter(log.partition for paths in workers for each in paths for log in each.logs)

        def with_epoch(log: FoundLog) -> FoundLog:
            if count[log.partition] == 1:
                return log
            return msgspec.structs.replace(log, last_epoch=last_epoch(self._files, log))

        return [
            [
                msgspec.structs.replace(each, logs=tuple(map(with_epoch, each.logs)))
                for each in paths
            ]
            for paths in workers
        ]

    def _look_into(self, path: Path) -> FoundDirectory:
        found = scan_log_dir(self._files, path)
        others = tuple(name for name in found.others if not name.startswith(PREFIX))
        return msgspec.structs.replace(found, others=others)

    async def _mark_behind(self, store: EmbeddedStore, workers: int) -> None:
        """Make sure that a worker without some committed records leads only after those
        that have them.
        """
        found = [self._look_into(path) for paths in self._folders(workers) for path in paths]
        for each in logs_behind(self._files, found, (await read_image(store)).topics):
            logger.warning("%s lacks records that are committed: other replicas lead first", each)
            replace(self._files, each.parent / UNCLEAN_SHUTDOWN, b"")

    async def _record(self, store: EmbeddedStore, workers: int) -> None:
        """Record the log directories in the store, so that a missing one is noticed."""
        stated = map(self._stated, chain.from_iterable(self._folders(workers)))
        cluster = await broker_registration.cluster_id(
            store,
            next(
                (each.cluster_id for each in stated if each is not None and each.cluster_id), None
            ),
            Uuid(self._chance.randbytes(16)),
        )
        paths: dict[str, str] = {}
        ids = await self._broker_ids(store, workers)
        for broker, folders in zip(ids, self._folders(workers), strict=True):
            for each in folders:
                self._files.make_dir(each)  # a log directory was added, or a lost one was forgotten
            paths |= identity.write(self._files, folders, broker, cluster, self._fresh_id)
        await write_known_log_dirs(store, paths)

    def _fresh_id(self) -> str:
        return uuid_text(Uuid(self._chance.randbytes(16)))
