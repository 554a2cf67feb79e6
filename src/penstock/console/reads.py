"""Reads that query the cluster on request, instead of using the last look."""

from collections.abc import Mapping

from msgspec import Struct

from penstock.client.configs import ConfigEntry, ConfigSource, Resource, describe_configs
from penstock.client.groups import committed_offsets
from penstock.client.hanging import find_hanging
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.client.reassignment import ongoing_reassignments
from penstock.client.reassignment_progress import progress
from penstock.client.transaction_admin import list_transactions
from penstock.config.resource_type import ConfigResourceType
from penstock.config.setting import settings as declared_settings
from penstock.config.topic import TopicConfig
from penstock.config.value import render
from penstock.console import model
from penstock.console.watch import ClusterLook, ClusterWatch

HANGS_MS = 900_000
"""A transaction without a write for so long may hang: the default of transaction.max.timeout.ms."""
Params = Mapping[str, str]


class Setting(Struct, frozen=True):
    """A setting: its value, the value that would apply without it, and the source of the value."""

    name: str
    value: str | None
    default: str | None
    source: str
    is_own: bool
    is_read_only: bool
    is_sensitive: bool
    doc: str


class CommittedOffset(Struct, frozen=True):
    """A committed offset, and the partition's first and end offsets."""

    topic: str
    partition: int
    offset: int
    start: int
    end: int


class Transaction(Struct, frozen=True):
    """A transactional id."""

    id: str
    state: str
    producer_id: int
    coordinator: int


class HangingTransaction(Struct, frozen=True):
    """A transaction that no coordinator will end; it blocks read_committed consumers."""

    topic: str
    partition: int
    producer_id: int
    start_offset: int
    last_ms: int


class Transactions(Struct, frozen=True):
    """All transactional ids, and hanging transactions."""

    ids: list[Transaction]
    hanging: list[HangingTransaction]


class Reassignment(Struct, frozen=True):
    """A partition that is being reassigned."""

    topic: str
    partition: int
    adding: list[int]
    removing: list[int]
    copied_bytes: int
    total_bytes: int


async def topic_settings(
    watch: ClusterWatch, look: ClusterLook, given: Params
) -> list[Setting] | None:
    name = given["topic"]
    if all(each.name != name for each in look.snapshot.topics):
        return None
    return await settings(watch, Resource(ConfigResourceType.TOPIC, name))


async def broker_settings(
    watch: ClusterWatch, look: ClusterLook, given: Params
) -> list[Setting] | None:
    name = given["broker"]
    if name not in map(str, look.snapshot.cluster.brokers):
        return None
    return await settings(watch, Resource(ConfigResourceType.BROKER, name))


async def settings(watch: ClusterWatch, resource: Resource) -> list[Setting]:
    found = await describe_configs(watch.client, resource, documentation=True)
    own = {
        ConfigResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    }[resource.type]
    every = [setting(found[name], own) for name in sorted(found)]
    return sorted(every, key=lambda each: not each.is_own)


def setting(entry: ConfigEntry, own: ConfigSource) -> Setting:
    """The default is the first synonym that is not the resource's own value. Brokers report no
    synonym for a topic setting whose broker setting has another unit, such as log.retention.hours;
    then the declared default is used.
    """
    others = [each.value for each in entry.synonyms if each.source is not own]
    is_own = entry.source is own
    declared = declared_settings(TopicConfig).get(entry.name)
    if is_own and not others and declared is not None:
        others = [render(declared.default)]
    return Setting(
        entry.name,
        entry.value,
        others[0] if others else None if is_own else entry.value,
        entry.source.name,
        is_own,
        entry.is_read_only,
        entry.is_sensitive,
        entry.documentation or "",
    )


async def group_offsets(
    watch: ClusterWatch, look: ClusterLook, given: Params
) -> list[CommittedOffset] | None:
    if model.group(look, given["group"]) is None:
        return None
    found = await committed_offsets(watch.client, given["group"])
    # A deleted topic has no offsets.
    known = [tp for tp in sorted(found) if tp in look.ends]
    starts = await list_offsets(watch.client, dict.fromkeys(known, EARLIEST))
    ends = await list_offsets(watch.client, dict.fromkeys(known, LATEST))
    return [
        CommittedOffset(*tp, found[tp].offset, starts[tp].offset, ends[tp].offset) for tp in known
    ]


async def transactions(watch: ClusterWatch, look: ClusterLook, _: Params) -> Transactions:
    ids = await list_transactions(watch.client)
    open_ones = await find_hanging(
        watch.client, look.ends, older_than_ms=HANGS_MS, now_ms=watch.now_ms()
    )
    return Transactions(
        [Transaction(each.id, each.state, each.producer_id, each.coordinator) for each in ids],
        [
            HangingTransaction(*tp, each.id, each.transaction_start, each.last_timestamp)
            for tp, each in open_ones
        ],
    )


async def reassignments(watch: ClusterWatch, _: ClusterLook, __: Params) -> list[Reassignment]:
    moving = await ongoing_reassignments(watch.client)
    by_partition = {(tp.topic, tp.partition): each for tp, each in moving.items()}
    return [
        Reassignment(
            row["topic"],
            row["partition"],
            row["adding"],
            list(by_partition[row["topic"], row["partition"]].removing),
            row["copied_bytes"],
            row["total_bytes"],
        )
        for row in await progress(watch.client, moving)
    ]
