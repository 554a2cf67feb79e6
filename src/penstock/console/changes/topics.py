"""Changes of topics: create, clone, configure, extend, empty, delete."""

from urllib.parse import quote

from msgspec import Struct, field

from penstock.client.admin import (
    BROKER_DEFAULT,
    NewTopic,
    create_partitions,
    create_topic,
    delete_topic,
    describe_topics,
)
from penstock.client.clone import clone_topic
from penstock.client.configs import Resource, alter_configs
from penstock.client.trimming import emptied
from penstock.config.resource_type import ConfigResourceType
from penstock.console.change import Change, Doing, Done, Int16, Int32
from penstock.console.jobs import Job
from penstock.counted import counted
from penstock.errors import ConfigError


class TopicCreate(Struct, frozen=True, kw_only=True):
    """A topic to create; the broker's defaults replace omitted numbers."""

    name: str
    partitions: Int32 | None = None
    replicas: Int16 | None = None
    configs: dict[str, str] = field(default_factory=dict)
    validate_only: bool = False


async def create(doing: Doing, wanted: TopicCreate) -> Done:
    new = NewTopic(
        name=wanted.name,
        partitions=BROKER_DEFAULT if wanted.partitions is None else wanted.partitions,
        replication_factor=BROKER_DEFAULT if wanted.replicas is None else wanted.replicas,
        configs=wanted.configs,
    )
    await create_topic(doing.client, new, validate_only=wanted.validate_only)
    if wanted.validate_only:
        return Done(f"{wanted.name} can be created")
    return Done(f"created {wanted.name}", page(wanted.name))


class TopicConfigure(Struct, frozen=True, kw_only=True):
    """Settings to set, and settings to reset to their defaults."""

    topic: str
    configs: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)


async def configure(doing: Doing, wanted: TopicConfigure) -> Done:
    if both := [each for each in wanted.unset if each in wanted.configs]:
        raise ConfigError(f"configs and unset both name {both[0]}")
    changes: dict[str, str | None] = {**wanted.configs, **dict.fromkeys(wanted.unset)}
    if not changes:
        raise ConfigError("nothing to change: give configs or unset")
    resource = Resource(ConfigResourceType.TOPIC, wanted.topic)
    await alter_configs(doing.client, resource, changes)
    return Done(f"changed {', '.join(changes)} of {wanted.topic}", f"{page(wanted.topic)}/settings")


class TopicExtend(Struct, frozen=True, kw_only=True):
    """The total number of partitions that the topic shall have."""

    topic: str
    partitions: Int32


async def extend(doing: Doing, wanted: TopicExtend) -> Done:
    await create_partitions(doing.client, wanted.topic, wanted.partitions)
    return Done(f"{wanted.topic} has {counted(wanted.partitions, 'partition')}", page(wanted.topic))


class TopicConfirm(Struct, frozen=True, kw_only=True):
    """`confirm` repeats the name of the topic, because deleted records cannot be restored."""

    topic: str
    confirm: str


async def empty(doing: Doing, wanted: TopicConfirm) -> Done:
    check_confirmed(wanted.topic, wanted.confirm)
    rows = await emptied(doing.client, wanted.topic)
    deleted = sum(each["deleted"] for each in rows)
    return Done(f"deleted {counted(deleted, 'record')} of {wanted.topic}", page(wanted.topic))


async def delete(doing: Doing, wanted: TopicConfirm) -> Done:
    check_confirmed(wanted.topic, wanted.confirm)
    await delete_topic(doing.client, wanted.topic)
    return Done(f"deleted {wanted.topic}", "/topics")


class TopicClone(Struct, frozen=True, kw_only=True):
    """A new topic with the partitions, replicas and settings of another; `records` copies
    its records too.
    """

    topic: str
    target: str
    records: bool = False


async def clone(doing: Doing, wanted: TopicClone) -> Done:
    client, source, target = doing.client, wanted.topic, wanted.target
    if not wanted.records:
        await clone_topic(client, source, target, records=False)
        return Done(f"created {target} like {source}", page(target))
    await describe_topics(client, [source])  # report a wrong name at once, not in the job

    async def work(job: Job) -> str:
        made = await clone_topic(client, source, target, records=True, on_progress=job.at)
        return f"created {target} like {source}, with {counted(made.records, 'record')}"

    doing.start(f"copy {source} to {target}", work)
    return Done(f"copying {source} to {target}", "/jobs")


def check_confirmed(name: str, confirm: str) -> None:
    if confirm != name:
        raise ConfigError(f"confirm must be the name: {name}")


def page(topic: str) -> str:
    return f"/topics/{quote(topic, safe='')}"


TOPICS = (
    Change("topic.create", "POST", "/api/v1/topics", "Create a topic.", TopicCreate, create),
    Change(
        "topic.configure",
        "POST",
        "/api/v1/topics/{topic}/settings",
        "Change settings of a topic.",
        TopicConfigure,
        configure,
    ),
    Change(
        "topic.extend",
        "POST",
        "/api/v1/topics/{topic}/partitions",
        "Add partitions. Keys move: records of a key are then in two partitions.",
        TopicExtend,
        extend,
    ),
    Change(
        "topic.empty",
        "POST",
        "/api/v1/topics/{topic}/empty",
        "Delete all records of a topic; offsets go on where they are.",
        TopicConfirm,
        empty,
    ),
    Change(
        "topic.clone",
        "POST",
        "/api/v1/topics/{topic}/clone",
        "Create a topic like another one, with its records if wanted.",
        TopicClone,
        clone,
    ),
    Change(
        "topic.delete",
        "POST",
        "/api/v1/topics/{topic}/delete",
        "Delete a topic with all its records.",
        TopicConfirm,
        delete,
    ),
)
