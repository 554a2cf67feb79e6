"""Reads Kafka's client settings by name, as given to commands and services."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from penstock.client.group_settings import GroupProtocol, GroupSettings, OffsetReset
from penstock.client.listing import IsolationLevel
from penstock.client.membership.assignor import ASSIGNORS, Assignor
from penstock.client.producer_session import Acks, ProducerSettings
from penstock.errors import ConfigError
from penstock.record.compression import Codec

T = TypeVar("T")
JAVA_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def group_settings(settings: Mapping[str, str]) -> GroupSettings:
    """A member's settings; missing ones have Kafka's defaults."""
    default = GroupSettings()
    auto_commit = _read(settings, "enable.auto.commit", _boolean, default=False)
    interval_ms = _read(settings, "auto.commit.interval.ms", int, 5_000)
    return GroupSettings(
        protocol=_read(settings, "group.protocol", _member(GroupProtocol), default.protocol),
        offset_reset=_read(
            settings, "auto.offset.reset", _member(OffsetReset), default.offset_reset
        ),
        isolation=_read(
            settings,
            "isolation.level",
            lambda text: IsolationLevel[text.upper()],
            default.isolation,
        ),
        auto_commit_interval_ms=interval_ms if auto_commit else None,
        instance_id=settings.get("group.instance.id") or None,
        session_timeout_ms=_read(settings, "session.timeout.ms", int, default.session_timeout_ms),
        heartbeat_interval_ms=_read(
            settings, "heartbeat.interval.ms", int, default.heartbeat_interval_ms
        ),
        max_poll_interval_ms=_read(
            settings, "max.poll.interval.ms", int, default.max_poll_interval_ms
        ),
        max_poll_records=_read(settings, "max.poll.records", _positive, default.max_poll_records),
        metadata_max_age_ms=_read(
            settings, "metadata.max.age.ms", int, default.metadata_max_age_ms
        ),
        assignors=_read(settings, "partition.assignment.strategy", _assignors, default.assignors),
        server_assignor=settings.get("group.remote.assignor") or None,
    )


def producer_settings(settings: Mapping[str, str]) -> ProducerSettings:
    default = ProducerSettings()
    acks = _read(settings, "acks", _acks, default.acks)
    return ProducerSettings(
        acks=acks,
        idempotent=_read(settings, "enable.idempotence", _boolean, acks is Acks.ALL),
        transactional_id=settings.get("transactional.id") or None,
        transaction_timeout_ms=_read(
            settings, "transaction.timeout.ms", _positive, default.transaction_timeout_ms
        ),
        codec=_read(settings, "compression.type", lambda text: Codec[text.upper()], default.codec),
    )


def batch_bytes(settings: Mapping[str, str]) -> int:
    """`batch.size`, by default that of Kafka's producer; 0 means that each record is a batch."""
    return max(_read(settings, "batch.size", int, 16_384), 1)


def _read(settings: Mapping[str, str], name: str, parse: Callable[[str], T], default: T) -> T:
    text = settings.get(name, "").strip()
    if not text:
        return default
    try:
        return parse(text)
    except (KeyError, ValueError):
        raise ConfigError(f"{name} is {text!r}, which is not a value of it") from None


def _member(kind: Callable[[str], T]) -> Callable[[str], T]:
    return lambda text: kind(text.lower())


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _acks(text: str) -> Acks:
    return Acks.ALL if text.lower() == "all" else Acks(int(text))


def _assignors(text: str) -> tuple[Assignor, ...]:
    """Assignors by name, or by the Java client's class name."""
    names = [each.strip().rpartition(".")[2] for each in text.split(",") if each.strip()]
    return tuple(ASSIGNORS[JAVA_ASSIGNORS.get(name, name)] for name in names)
