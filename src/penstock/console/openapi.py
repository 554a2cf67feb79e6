"""The OpenAPI document of the REST API, derived from the table of routes. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.console.change import Change
from penstock.console.route import ApiRoute, OwnRoute
from penstock.console.session import COOKIE

REF = "#/components/schemas/{name}"


def document(
    routes: Sequence[ApiRoute | OwnRoute], changes: Sequence[Change], version: str
) -> dict[str, Any]:
    """The document of all reads and changes."""
    schemas, components = msgspec.json.schema_components(
        [*(each.response for each in routes), *(each.response for each in changes)],
        ref_template=REF,
    )
    for each in changes:  # the types inside of request bodies
        _, inside = msgspec.json.schema_components([each.request], ref_template=REF)
        components |= {name: kind for name, kind in inside.items() if name != each.request.__name__}
    paths: dict[str, dict[str, Any]] = {}
    for route, schema in zip(routes, schemas, strict=False):
        paths.setdefault(route.path, {})["get"] = _operation(route, schema)
    for change, schema in zip(changes, schemas[len(routes) :], strict=True):
        paths.setdefault(change.path, {})[change.method.lower()] = _change(change, schema)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Penstock", "version": version},
        "paths": paths,
        "security": [{"bearer": []}, {"basic": []}, {"session": []}, {}],
        "components": {
            "securitySchemes": SECURITY,
            "schemas": {
                **components,
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}},
                    "required": ["error"],
                },
            },
        },
    }


def _operation(route: ApiRoute | OwnRoute, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": route.summary,
        "parameters": [
            {
                "name": name,
                "in": "path" if f"{{{name}}}" in route.path else "query",
                "required": name in route.parameters,
                "schema": {"type": "string"},
            }
            for name in (*route.parameters, *route.optional)
        ],
        "responses": {
            "200": _json("The answer.", schema),
            **{
                status: _json(text, {"$ref": REF.format(name="Error")})
                for status, text in ERRORS.items()
            },
        },
    }


def _change(change: Change, schema: dict[str, Any]) -> dict[str, Any]:
    """The operation of a change. Its body has the fields that are not in the path."""
    (_,), components = msgspec.json.schema_components([change.request], ref_template=REF)
    body = dict(components[change.request.__name__])
    named = [each for each in body["properties"] if f"{{{each}}}" in change.path]
    body["properties"] = {
        name: each for name, each in body["properties"].items() if name not in named
    }
    body["required"] = [each for each in body.get("required", []) if each not in named]
    return {
        "operationId": change.name,
        "summary": change.summary,
        "parameters": [
            {"name": each, "in": "path", "required": True, "schema": {"type": "string"}}
            for each in named
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": _json("What was done.", schema),
            **{
                status: _json(text, {"$ref": REF.format(name="Error")})
                for status, text in CHANGE_ERRORS.items()
            },
        },
    }


ACCESS_ERRORS = {
    "401": "Log in by Basic or Bearer.",
    "403": "The role does not suffice, or X-CSRF-Token is missing.",
    "429": "Too many failed logins.",
}
CHANGE_ERRORS = {
    "400": "A field is missing, unknown or wrong.",
    **ACCESS_ERRORS,
    "404": "There is no such topic or group.",
    "409": "The cluster refused it.",
    "413": "The body is too long.",
    "503": "The cluster does not answer.",
}
ERRORS = {
    "400": "A parameter is missing or wrong, or there is one too many.",
    **ACCESS_ERRORS,
    "404": "There is no such topic or group.",
    "409": "The cluster refused it.",
    "503": "The cluster does not answer.",
}
SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token from the users file."},
    "basic": {"type": "http", "scheme": "basic", "description": "Name and password."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "Of a browser that logged in. Changes also need X-CSRF-Token, which "
        "/api/v1/session tells; so do changes on loopback without users, where nobody logs in.",
    },
}


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
