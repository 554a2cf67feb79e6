"""The OpenAPI description of the record routes. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.console.messages.export import FORMATS
from penstock.console.messages.parameters import EXPORT, PAGE, QUERY, TAIL, Parameter
from penstock.console.messages.produce import IMPORT_FORMATS, Imported
from penstock.console.messages.view import Followed, MessageDetail, MessagePage
from penstock.console.openapi import ACCESS_ERRORS, REF

BASE = "/api/v1/topics/{topic}"
ONE = BASE + "/messages/{partition}/{offset}"
ERRORS = {
    "400": "A parameter or the body is wrong.",
    "404": "There is no such topic, partition or record.",
    **ACCESS_ERRORS,
    "409": "A broker refuses.",
    "413": "The file is too long.",
    "503": "The cluster does not answer.",
}
BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def with_messages(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the record routes added."""
    kinds = (MessagePage, MessageDetail, Followed, Imported)
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    page, detail, followed, imported = map(_json, schemas)
    document["components"]["schemas"] |= components
    for path, operations in {
        BASE + "/messages": {
            "get": _operation("Search records.", page, (*QUERY, *PAGE), ("topic",)),
        },
        ONE: {"get": _operation("A record.", detail, (), ("topic", "partition", "offset"))},
        ONE + "/{part}": {
            "get": _operation(
                "The bytes of a key or value.", BYTES, (), ("topic", "partition", "offset", "part")
            )
        },
        BASE + "/export": {
            "get": _operation(
                "Records as a file, the oldest first.",
                {kind: {"schema": {"type": "string"}} for kind, _, _ in FORMATS.values()},
                EXPORT,
                ("topic",),
            )
        },
        BASE + "/tail": {
            "get": _operation(
                "New records as server-sent events, each with this as its data.",
                {"text/event-stream": followed["application/json"]},
                TAIL,
                ("topic",),
            )
        },
        BASE + "/import": {
            "post": {
                **_operation("Write the records of a file.", imported, IMPORT, ("topic",)),
                "requestBody": {"required": True, "content": BYTES},
            }
        },
    }.items():
        document["paths"].setdefault(path, {}).update(operations)
    return document


IMPORT = (Parameter("format", "Of the file.", {"type": "string", "enum": list(IMPORT_FORMATS)}),)


def _operation(
    summary: str, content: dict[str, Any], query: Iterable[Parameter], path: Iterable[str]
) -> dict[str, Any]:
    return {
        "summary": summary,
        "parameters": [
            *(
                {"name": each, "in": "path", "required": True, "schema": _path(each)}
                for each in path
            ),
            *(
                {"name": each.name, "in": "query", "description": each.text, "schema": each.schema}
                for each in query
            ),
        ],
        "responses": {
            "200": {"description": "The answer.", "content": content},
            **{
                status: {
                    "description": text,
                    "content": _json({"$ref": REF.format(name="Error")}),
                }
                for status, text in ERRORS.items()
            },
        },
    }


def _path(name: str) -> dict[str, Any]:
    if name == "part":
        return {"type": "string", "enum": ["key", "value"]}
    return {"type": "string"} if name == "topic" else {"type": "integer", "minimum": 0}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
