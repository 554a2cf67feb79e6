"""Settings of the broker's identity and its log directories."""

from dataclasses import dataclass
from typing import Final

from penstock.config.setting import Update, setting
from penstock.config.value import ConfigType
from penstock.errors import ConfigError
from penstock.types import BrokerId

CORDONED_LOG_DIRS: Final = "cordoned.log.dirs"
EVERY_LOG_DIR: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityConfig:
    """The broker's identity, and its log directories."""

    broker_id: int = setting(
        "broker.id",
        -1,
        "This broker's id in the cluster; -1 lets the metadata store generate one.",
        low=-1,
    )
    node_id: int | None = setting(
        "node.id",
        None,
        "KRaft's name for `broker.id`; the two must agree when both are set.",
        kind=ConfigType.INT,
        low=0,
    )
    broker_id_generation_enable: bool = setting(
        "broker.id.generation.enable",
        True,
        "Generate an id for a broker whose `broker.id` is -1.",
    )
    reserved_broker_max_id: int = setting(
        "reserved.broker.max.id",
        1000,
        "Generated ids are greater than this.",
        low=0,
    )
    broker_rack: str | None = setting(
        "broker.rack",
        None,
        "The rack, or zone, of this broker: replicas are spread over racks, and consumers may "
        "read nearby.",
    )
    log_dirs: tuple[str, ...] | None = setting(
        "log.dirs",
        None,
        "Directories that hold the partitions' logs; `log.dir` serves when this is not set.",
        kind=ConfigType.LIST,
    )
    log_dir: tuple[str, ...] = setting(
        "log.dir",
        ("/tmp/kafka-logs",),  # noqa: S108 (Kafka's default)
        "The log directory when `log.dirs` is not set.",
    )
    cordoned_log_dirs: tuple[str, ...] = setting(
        CORDONED_LOG_DIRS,
        (),
        "Log directories that get no new partitions; * means all. A broker with all of them "
        "cordoned gets partitions only where an assignment names it.",
        update=Update.PER_BROKER,
    )
    process_roles: tuple[str, ...] = setting(
        "process.roles",
        (),
        "Accepted so that a KRaft file starts a broker: every Penstock broker can be controller. "
        "A controller alone is refused.",
        choices=("broker", "controller"),
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(
        "controller.quorum.bootstrap.servers",
        (),
        "Accepted so that a KRaft file starts a broker: there is no KRaft quorum. Several nodes "
        "are refused without `zookeeper.connect`.",
    )
    controller_quorum_voters: tuple[str, ...] = setting(
        "controller.quorum.voters",
        (),
        "Accepted so that a KRaft file starts a broker: there is no KRaft quorum. Several nodes "
        "are refused without `zookeeper.connect`.",
    )

    def __post_init__(self) -> None:
        if self.node_id is not None and self.broker_id not in {-1, self.node_id}:
            raise ConfigError(f"node.id ({self.node_id}) is not broker.id ({self.broker_id})")
        if not self.directories:
            raise ConfigError("log.dirs names no directory")
        if twice := [each for each in self.directories if self.directories.count(each) > 1]:
            raise ConfigError(f"log.dirs names {twice[0]} twice")

    @property
    def number(self) -> BrokerId | None:
        """The broker's id from either setting; None if it is still to be generated."""
        if self.broker_id != -1:
            return BrokerId(self.broker_id)
        return None if self.node_id is None else BrokerId(self.node_id)

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(filter(None, self.log_dir if self.log_dirs is None else self.log_dirs))
