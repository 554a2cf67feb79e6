"""Schemas of a registry: subjects, versions, what changed between two, and compatibility."""

import asyncio
import difflib
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.errors import ConfigError
from penstock.record_view.registry import RegisteredSchema, SchemaRegistry

Params = Mapping[str, str]


class SchemaVersion(Struct, frozen=True):
    """A version of a subject; `diff` is the change from the version before it."""

    version: int
    id: int
    type: str
    schema: str
    diff: list[str]


class Subject(Struct, frozen=True):
    """A subject with its versions, the newest first."""

    name: str
    level: str
    versions: list[SchemaVersion]


async def subjects(watch: ClusterWatch, _: ClusterLook, __: Params) -> list[str]:
    return await asyncio.to_thread(registry_of(watch).subjects)


async def subject(watch: ClusterWatch, _: ClusterLook, given: Params) -> Subject | None:
    return await asyncio.to_thread(described, registry_of(watch), given["subject"])


def registry_of(watch: ClusterWatch) -> SchemaRegistry:
    if watch.registry is None:
        raise ConfigError("no schema registry is known: start the console with --registry")
    return watch.registry


def described(registry: SchemaRegistry, name: str) -> Subject | None:
    if name not in registry.subjects():
        return None
    versions, before = list[SchemaVersion](), ""
    for number in registry.numbers(name):
        found = registry.version(name, number)
        text = pretty(found)
        diff = changes(before, text) if versions else []
        versions.append(SchemaVersion(number, found.id, found.schema_type, text, diff))
        before = text
    return Subject(name, registry.level(name), versions[::-1])


def pretty(schema: RegisteredSchema) -> str:
    """Schema text for a diff: Avro and JSON with one field per line."""
    if schema.schema_type == "PROTOBUF":
        return schema.schema
    try:
        return msgspec.json.format(schema.schema, indent=2)
    except msgspec.DecodeError:
        return schema.schema


def changes(before: str, after: str) -> list[str]:
    """Diff lines that begin with +, - or a space, with three lines of context."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    return [each for each in found if not each.startswith(("---", "+++", "@@"))]
