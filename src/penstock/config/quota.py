"""Settings of quota windows."""

from dataclasses import dataclass

from penstock.config.setting import setting
from penstock.config.value import ConfigType


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaConfig:
    """The windows over which quotas are measured."""

    quota_window_num: int = setting(
        "quota.window.num",
        11,
        "Windows over which the rates of clients are taken, for quotas.",
        low=1,
    )
    quota_window_size_seconds: int = setting(
        "quota.window.size.seconds",
        1,
        "The length of a window of quotas.",
        low=1,
    )
    replication_quota_window_num: int = setting(
        "replication.quota.window.num",
        11,
        "Accepted, without effect: a throttle has no windows; bytes are paid off at its rate.",
        low=1,
    )
    replication_quota_window_size_seconds: int = setting(
        "replication.quota.window.size.seconds",
        1,
        "Accepted, without effect: a throttle has no windows; bytes are paid off at its rate.",
        low=1,
    )
    alter_log_dirs_replication_quota_window_num: int = setting(
        "alter.log.dirs.replication.quota.window.num",
        11,
        "Accepted, without effect: a throttle has no windows; bytes are paid off at its rate.",
        low=1,
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = setting(
        "alter.log.dirs.replication.quota.window.size.seconds",
        1,
        "Accepted, without effect: a throttle has no windows; bytes are paid off at its rate.",
        low=1,
    )
    controller_quota_window_num: int = setting(
        "controller.quota.window.num",
        11,
        "Windows whose share of partitions may be created or deleted at once.",
        low=1,
    )
    controller_quota_window_size_seconds: int = setting(
        "controller.quota.window.size.seconds",
        1,
        "The length of a window of `controller_mutation_rate`.",
        low=1,
    )
    client_quota_callback_class: str | None = setting(
        "client.quota.callback.class",
        None,
        "A class that decides which quotas apply to a client. Only unset.",
        kind=ConfigType.CLASS,
        only="Java classes cannot be loaded, and clients would have other quotas",
    )
