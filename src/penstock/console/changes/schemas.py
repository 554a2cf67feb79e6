"""Changes of schemas: test whether a schema could be the next version, and register it."""

import asyncio
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from penstock.console.change import Change, Doing, Done
from penstock.errors import ConfigError
from penstock.record_view.registry import SchemaRegistry


class SchemaText(Struct, frozen=True, kw_only=True):
    """A schema for a subject."""

    subject: str
    schema: str
    type: Literal["AVRO", "JSON", "PROTOBUF"] = "AVRO"


async def check(doing: Doing, wanted: SchemaText) -> Done:
    found = await asyncio.to_thread(
        known(doing).incompatibilities, wanted.subject, wanted.schema, wanted.type
    )
    if found:
        raise ConfigError("; ".join(found))
    return Done(f"it can be the next version of {wanted.subject}")


async def register(doing: Doing, wanted: SchemaText) -> Done:
    found = await asyncio.to_thread(
        known(doing).register, wanted.subject, wanted.schema, wanted.type
    )
    page = f"/schema?subject={quote(wanted.subject, safe='')}"
    return Done(f"registered {wanted.subject} as schema {found}", page)


def known(doing: Doing) -> SchemaRegistry:
    if doing.registry is None:
        raise ConfigError("no schema registry is known: start the console with --registry")
    return doing.registry


SCHEMAS = (
    Change(
        "schema.test",
        "POST",
        "/api/v1/schemas/test",
        "Test whether a schema can be the next version of its subject; it is not registered.",
        SchemaText,
        check,
    ),
    Change(
        "schema.register",
        "POST",
        "/api/v1/schemas",
        "Register a schema.",
        SchemaText,
        register,
    ),
)
