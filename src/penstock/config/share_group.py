"""Settings that a single share group may have (Kafka's group configs)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.config.setting import BrokerSynonym, attribute, load, setting, settings
from penstock.config.share import BOUNDED, ShareConfig, bound
from penstock.config.stored import usable
from penstock.config.value import LONG_MAX
from penstock.errors import ConfigError

PREFIXES = ("share.", "penstock.share.", "errors.deadletterqueue.")
"""The prefixes of a share group's settings; other group settings are for consumer
and streams groups.
"""
EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration:"
_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupConfig:
    """A share group's own settings, within the broker's limits; the rest follows the broker."""

    share_session_timeout_ms: int = setting(
        "share.session.timeout.ms",
        45_000,
        "How long a member may be silent before it is considered dead.",
        low=1,
        synonyms=(BrokerSynonym("group.share.session.timeout.ms"),),
    )
    share_heartbeat_interval_ms: int = setting(
        "share.heartbeat.interval.ms",
        5000,
        "Heartbeat interval of members.",
        low=1,
        synonyms=(BrokerSynonym("group.share.heartbeat.interval.ms"),),
    )
    share_assignment_interval_ms: int = setting(
        "share.assignment.interval.ms",
        1000,
        "Least time between two assignments.",
        low=0,
        synonyms=(BrokerSynonym("group.share.assignment.interval.ms"),),
    )
    share_record_lock_duration_ms: int = setting(
        "share.record.lock.duration.ms",
        30_000,
        "How long a member has a record before it is delivered again.",
        low=1000,
        synonyms=(BrokerSynonym("group.share.record.lock.duration.ms"),),
    )
    share_delivery_count_limit: int = setting(
        "share.delivery.count.limit",
        5,
        "How often a record is delivered.",
        low=2,
        synonyms=(BrokerSynonym("group.share.delivery.count.limit"),),
    )
    share_partition_max_record_locks: int = setting(
        "share.partition.max.record.locks",
        2000,
        "Records in flight per partition.",
        low=100,
        synonyms=(BrokerSynonym("group.share.partition.max.record.locks"),),
    )
    share_auto_offset_reset: str = setting(
        "share.auto.offset.reset",
        LATEST,
        "Where a group starts in a partition that is new to it: `earliest`, `latest`, or "
        "`by_duration:` and an ISO 8601 duration, such as PT1H for the records of the last hour.",
    )
    share_isolation_level: str = setting(
        "share.isolation.level",
        "read_uncommitted",
        "Whether records of aborted transactions are delivered.",
        choices=("read_committed", "read_uncommitted"),
    )
    share_renew_acknowledge_enable: bool = setting(
        "share.renew.acknowledge.enable", True, "Whether members may renew their locks on records."
    )
    errors_deadletterqueue_topic_name: str = setting(
        "errors.deadletterqueue.topic.name",
        "",
        "The topic for records that are rejected or were delivered too often; empty: they are "
        "dropped. Its name begins with the broker's `errors.deadletterqueue.topic.name.prefix`. "
        "Needs `share.version` 2.",
    )
    errors_deadletterqueue_copy_record_enable: bool = setting(
        "errors.deadletterqueue.copy.record.enable",
        False,
        "Whether a dead letter has the record's key, value and headers; otherwise it only says "
        "where the record is.",
    )
    penstock_share_redelivery_backoff_ms: int = setting(
        "penstock.share.redelivery.backoff.ms",
        0,
        "How long a record that was released, or whose lock ended, stays invisible after its first "
        "delivery. Doubles with each further one. 0: it can be had at once, as in Kafka.",
        low=0,
        high=3_600_000,
    )
    penstock_share_redelivery_backoff_max_ms: int = setting(
        "penstock.share.redelivery.backoff.max.ms",
        60_000,
        "The longest time that a failed record stays invisible.",
        low=1,
        high=86_400_000,
    )
    penstock_share_key_order: bool = setting(
        "penstock.share.key.order",
        False,
        "Whether records with one key are handed out one after another, each once the one before "
        "is finished. Records without a key have no order.",
    )
    penstock_share_pause: bool = setting(
        "penstock.share.pause",
        False,
        "Whether no records are handed out. Members keep those that they have.",
    )
    penstock_share_breaker_failures: int = setting(
        "penstock.share.breaker.failures",
        0,
        "After so many failed deliveries of a partition in a row no more of it is handed out for "
        "`penstock.share.breaker.pause.ms`. 0: never.",
        low=0,
    )
    penstock_share_breaker_pause_ms: int = setting(
        "penstock.share.breaker.pause.ms",
        30_000,
        "How long nothing is handed out after too many failures. Then one record is tried.",
        low=1,
        high=3_600_000,
    )


def duration_ms(reset: str) -> int | None:
    """How far back a `by_duration:` value goes; None if the text is not such a value."""
    found = _DURATION.fullmatch(reset.removeprefix(BY_DURATION))
    if not reset.startswith(BY_DURATION) or found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    back_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    return round(back_ms) if back_ms <= LONG_MAX else None


def share_group_defaults(broker: ShareConfig) -> ShareGroupConfig:
    """The settings of a share group without overrides."""
    return replace(
        ShareGroupConfig(),
        **{
            attribute(f"share.{name}"): getattr(broker, attribute(f"group.share.{name}"))
            for name in BOUNDED
        },
    )


def effective_share_config(overrides: Mapping[str, str], broker: ShareConfig) -> ShareGroupConfig:
    """A group's settings, clamped to the broker's limits, which may have been narrowed since."""
    given = load(
        ShareGroupConfig,
        usable(overrides, settings(ShareGroupConfig)),
        share_group_defaults(broker),
    )
    return replace(
        given,
        **{
            attribute(name): min(max(getattr(given, attribute(name)), least), greatest)
            for name, least, greatest in _limits(broker)
        },
    )


def check_share_config(overrides: Mapping[str, str], broker: ShareConfig) -> None:
    """Reject settings that a group cannot have on this broker."""
    unknown = sorted(overrides.keys() - settings(ShareGroupConfig).keys())
    if unknown:
        raise ConfigError(f"Unknown group config name: {unknown[0]}")
    given = load(ShareGroupConfig, overrides, share_group_defaults(broker))
    reset = given.share_auto_offset_reset
    if reset not in {EARLIEST, LATEST} and duration_ms(reset) is None:
        raise ConfigError(
            f"Invalid value {reset} for configuration share.auto.offset.reset: Invalid value "
            f"`{reset}` for configuration share.auto.offset.reset. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS.>'."
        )
    letters, prefix = (
        given.errors_deadletterqueue_topic_name,
        broker.errors_deadletterqueue_topic_name_prefix,
    )
    if letters and (letters.startswith("__") or not letters.startswith(prefix)):
        raise ConfigError(
            f"errors.deadletterqueue.topic.name ({letters}) must begin with "
            f"errors.deadletterqueue.topic.name.prefix ({prefix}), and not with __"
        )
    for name, least, greatest in _limits(broker):
        value = getattr(given, attribute(name))
        if name in overrides and not least <= value <= greatest:
            words, which = ("greater", "min") if value < least else ("less", "max")
            limit = bound(name.removeprefix("share."), which)
            raise ConfigError(f"{name} must be {words} than or equal to {limit}")
    if given.share_heartbeat_interval_ms >= given.share_session_timeout_ms:
        raise ConfigError(
            f"share.heartbeat.interval.ms ({given.share_heartbeat_interval_ms}) must be less than "
            f"share.session.timeout.ms ({given.share_session_timeout_ms})"
        )


def _limits(broker: ShareConfig) -> Iterator[tuple[str, int, int]]:
    for name in BOUNDED:
        least, greatest = (getattr(broker, attribute(bound(name, each))) for each in ("min", "max"))
        yield f"share.{name}", least, greatest
