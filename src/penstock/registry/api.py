"""Confluent's REST API: the operation behind each route, and the role that it needs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from penstock import __version__
from penstock.http.users import Role
from penstock.registry import changes, errors
from penstock.registry.changes import Registration
from penstock.registry.compatibility import Parse
from penstock.registry.errors import RegistryError
from penstock.registry.posted import PostedLevel, PostedMode, PostedSchema, posted
from penstock.registry.queries import (
    check_compatible,
    described,
    described_version,
    find_version,
    formatted,
)
from penstock.registry.records import RegistryRecord
from penstock.registry.schema import Schema
from penstock.registry.service import RegistryService
from penstock.registry.state import RegistryState, Version
from penstock.types import Offset


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, independent of HTTP."""

    variables: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes

    @property
    def subject(self) -> str:
        return self.variables["subject"]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        try:
            return int(text) if text else default
        except ValueError:
            raise RegistryError(400, f"{name} is {text!r}, must be a number") from None

    def page(self, found: list[Any]) -> list[Any]:
        """The slice that the parameters `offset` and `limit` select."""
        start, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return found[start:] if limit < 0 else found[start : start + limit]


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """The JSON of a response, and the offset after the written records, if there are any."""

    json: Any
    end: Offset | None = None


Do: TypeAlias = Callable[[RegistryService, Asked], Awaitable[RegistryAnswer]]


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table of operations below."""

    method: str
    path: str
    role: Role
    do: Do


def query_of(text: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()}


async def root(_: RegistryService, __: Asked) -> RegistryAnswer:
    return RegistryAnswer({})


async def schema_types(_: RegistryService, __: Asked) -> RegistryAnswer:
    return RegistryAnswer(["JSON", "PROTOBUF", "AVRO"])


async def contexts(_: RegistryService, __: Asked) -> RegistryAnswer:
    return RegistryAnswer(["."])


async def release(_: RegistryService, __: Asked) -> RegistryAnswer:
    return RegistryAnswer({"version": __version__, "commitId": "penstock"})


async def schemas(service: RegistryService, asked: Asked) -> RegistryAnswer:
    state, prefix = service.state, asked.query.get("subjectPrefix", "")
    found: list[Version] = []
    for subject in state.subjects():
        if not subject.startswith(prefix):
            continue
        there = state.all_versions(subject) if asked.flag("deleted") else state.versions(subject)
        found += there[-1:] if asked.flag("latestOnly") else there
    return RegistryAnswer([described_version(each) for each in asked.page(found)])


async def schema_by_id(service: RegistryService, asked: Asked) -> RegistryAnswer:
    schema = await _schema(service, asked)
    text = await _formatted(service, asked, schema)
    maximum = {"maxId": service.state.last_id} if asked.flag("fetchMaxId") else {}
    return RegistryAnswer({**described(schema, text), **maximum})


async def raw_schema_by_id(service: RegistryService, asked: Asked) -> RegistryAnswer:
    schema = await _schema(service, asked)
    return RegistryAnswer(RawText(await _formatted(service, asked, schema) or schema.text))


async def subjects_of_id(service: RegistryService, asked: Asked) -> RegistryAnswer:
    return RegistryAnswer(
        asked.page(sorted({each.subject for each in await _holders(service, asked)}))
    )


async def versions_of_id(service: RegistryService, asked: Asked) -> RegistryAnswer:
    held = sorted((each.subject, each.number) for each in await _holders(service, asked))
    return RegistryAnswer(
        asked.page([{"subject": name, "version": number} for name, number in held])
    )


async def subjects(service: RegistryService, asked: Asked) -> RegistryAnswer:
    state, prefix = service.state, asked.query.get("subjectPrefix", "")
    if prefix.startswith(":.") or prefix == ":*:":
        prefix = prefix.removeprefix(":*:").removeprefix(":.:")
        if prefix.startswith(":."):
            return RegistryAnswer([])  # only the default context exists
    found = []
    for each in state.subjects():
        alive = bool(state.versions(each))
        wanted = not alive if asked.flag("deletedOnly") else alive or asked.flag("deleted")
        if each.startswith(prefix) and wanted:
            found.append(each)
    return RegistryAnswer(asked.page(found))


async def versions(service: RegistryService, asked: Asked) -> RegistryAnswer:
    there = service.state.all_versions(asked.subject)
    if asked.flag("deletedOnly"):
        there = [each for each in there if each.deleted]
    elif not asked.flag("deleted"):
        there = [each for each in there if not each.deleted]
    if not there:
        raise errors.subject_not_found(asked.subject)
    return RegistryAnswer(asked.page([each.number for each in there]))


async def version(service: RegistryService, asked: Asked) -> RegistryAnswer:
    found = _version(service.state, asked)
    return RegistryAnswer(described_version(found, await _formatted(service, asked, found.schema)))


async def raw_version(service: RegistryService, asked: Asked) -> RegistryAnswer:
    found = _version(service.state, asked)
    return RegistryAnswer(
        RawText(await _formatted(service, asked, found.schema) or found.schema.text)
    )


async def referenced_by(service: RegistryService, asked: Asked) -> RegistryAnswer:
    found = _version(service.state, replace(asked, query={**asked.query, "deleted": "true"}))
    users = service.state.users(found.subject, found.number)
    return RegistryAnswer(asked.page(sorted({each.id for each in users})))


async def register(service: RegistryService, asked: Asked) -> RegistryAnswer:
    body = posted(asked.body, PostedSchema)
    given = body.given()

    def decide(state: RegistryState, parse: Parse) -> tuple[tuple[RegistryRecord, ...], int]:
        parsed = parse(given)
        text = parsed.normalized() if asked.flag("normalize") else parsed.canonical
        wanted = Registration(
            asked.subject,
            Schema(text, given.type, given.references),
            parsed,
            id=body.id if body.id != -1 else None,
            version=body.version if body.version not in {-1, 0} else None,
        )
        registered = changes.register(state, wanted, parse)
        return registered.records, registered.id

    changes.check_subject(asked.subject)
    found, end = await service.change(decide)
    return RegistryAnswer({"id": found}, end)


async def look_up(service: RegistryService, asked: Asked) -> RegistryAnswer:
    given = posted(asked.body, PostedSchema).given()
    deleted = asked.flag("deleted")
    if not asked.flag("normalize"):
        # Fast path: clients mostly send the stored text, which needs no parsing.
        same = changes.find_exact(service.state, asked.subject, given, deleted=deleted)
        if same is not None:
            return RegistryAnswer(described_version(same))

    def ask(state: RegistryState, parse: Parse) -> Version:
        if not (state.all_versions if deleted else state.versions)(asked.subject):
            raise errors.subject_not_found(asked.subject)
        parsed = parse(given)
        text = parsed.normalized() if asked.flag("normalize") else parsed.canonical
        schema = Schema(text, given.type, given.references)
        found = changes.find(state, asked.subject, schema, parsed, parse, deleted=deleted)
        if found is None:
            raise errors.schema_not_found()
        return found

    return RegistryAnswer(described_version(await service.read(ask)))


async def delete_subject(service: RegistryService, asked: Asked) -> RegistryAnswer:
    def decide(state: RegistryState, _: Parse) -> tuple[tuple[RegistryRecord, ...], list[int]]:
        return changes.delete_subject(state, asked.subject, permanent=asked.flag("permanent"))

    return RegistryAnswer(*await service.change(decide))


async def delete_version(service: RegistryService, asked: Asked) -> RegistryAnswer:
    def decide(state: RegistryState, _: Parse) -> tuple[tuple[RegistryRecord, ...], int]:
        found = find_version(state, asked.subject, asked.variables["version"], deleted=True)
        if asked.variables["version"] in {"latest", "-1"} and not asked.flag("permanent"):
            found = find_version(state, asked.subject, "latest")
        done = changes.delete_version(state, found, permanent=asked.flag("permanent"))
        return done.records, done.versions[0]

    return RegistryAnswer(*await service.change(decide))


async def compatible(service: RegistryService, asked: Asked) -> RegistryAnswer:
    given = posted(asked.body, PostedSchema).given()

    def ask(state: RegistryState, parse: Parse) -> list[str]:
        return check_compatible(state, asked.subject, asked.variables.get("version"), given, parse)

    verbose = asked.flag("verbose")
    try:
        reasons = await service.read(ask)
    except RegistryError as error:
        if not verbose or error.code != errors.INVALID_SCHEMA:
            raise
        reasons = [error.message]  # with verbose, a broken schema is a reason, not an error
    messages = {"messages": reasons} if verbose else {}
    return RegistryAnswer({"is_compatible": not reasons, **messages})


async def level(service: RegistryService, asked: Asked) -> RegistryAnswer:
    subject = asked.variables.get("subject")
    found = service.state.level(subject)
    if found is None and subject is not None and not asked.flag("defaultToGlobal"):
        raise errors.no_subject_level(subject)
    return RegistryAnswer({"compatibilityLevel": found or service.state.effective_level(subject)})


async def set_level(service: RegistryService, asked: Asked) -> RegistryAnswer:
    wanted = posted(asked.body, PostedLevel).given()

    def decide(state: RegistryState, _: Parse) -> tuple[list[RegistryRecord], None]:
        return [changes.set_level(state, asked.variables.get("subject"), wanted)], None

    _, end = await service.change(decide)
    return RegistryAnswer({"compatibility": wanted}, end)


async def unset_level(service: RegistryService, asked: Asked) -> RegistryAnswer:
    def decide(state: RegistryState, _: Parse) -> tuple[list[RegistryRecord], str]:
        record, was = changes.unset_level(state, asked.variables.get("subject"))
        return [record], was

    was, end = await service.change(decide)
    return RegistryAnswer({"compatibilityLevel": was}, end)


async def mode(service: RegistryService, asked: Asked) -> RegistryAnswer:
    subject = asked.variables.get("subject")
    found = service.state.mode(subject)
    if found is None and subject is not None and not asked.flag("defaultToGlobal"):
        raise errors.no_subject_mode(subject)
    return RegistryAnswer({"mode": found or service.state.effective_mode(subject)})


async def set_mode(service: RegistryService, asked: Asked) -> RegistryAnswer:
    wanted = posted(asked.body, PostedMode).mode.upper()
    force = asked.flag("force")

    def decide(state: RegistryState, _: Parse) -> tuple[list[RegistryRecord], None]:
        return [changes.set_mode(state, asked.variables.get("subject"), wanted, force=force)], None

    _, end = await service.change(decide)
    return RegistryAnswer({"mode": wanted}, end)


async def unset_mode(service: RegistryService, asked: Asked) -> RegistryAnswer:
    def decide(state: RegistryState, _: Parse) -> tuple[list[RegistryRecord], str]:
        record, was = changes.unset_mode(state, asked.variables.get("subject"))
        return [record], was

    was, end = await service.change(decide)
    return RegistryAnswer({"mode": was}, end)


class RawText(str):
    """A response whose body is the text itself, not a JSON string."""

    __slots__ = ()


async def _schema(service: RegistryService, asked: Asked) -> Schema:
    text = asked.variables["id"]
    known = text.isascii() and text.isdigit() and len(text) < 12
    found = await service.schema(int(text)) if known else None
    if found is None:
        raise RegistryError(40403, f"Schema {text} not found")
    return found


async def _holders(service: RegistryService, asked: Asked) -> list[Version]:
    await _schema(service, asked)
    holders = service.state.holders(int(asked.variables["id"]))
    return [each for each in holders if asked.flag("deleted") or not each.deleted]


def _version(state: RegistryState, asked: Asked) -> Version:
    return find_version(
        state, asked.subject, asked.variables["version"], deleted=asked.flag("deleted")
    )


async def _formatted(service: RegistryService, asked: Asked, schema: Schema) -> str | None:
    """The text in the requested format; None: return it as stored."""
    name = asked.query.get("format", "")
    if not name:
        return None
    return await service.read(lambda _, parse: formatted(schema, name, parse))


VIEWER, OPERATOR, ADMIN = Role.VIEWER, Role.OPERATOR, Role.ADMIN
_S, _V = "/subjects/{subject}", "/subjects/{subject}/versions/{version}"
OPERATIONS = (
    Operation("GET", "/", VIEWER, root),
    Operation("GET", "/schemas", VIEWER, schemas),
    Operation("GET", "/schemas/types", VIEWER, schema_types),
    Operation("GET", "/schemas/ids/{id}", VIEWER, schema_by_id),
    Operation("GET", "/schemas/ids/{id}/schema", VIEWER, raw_schema_by_id),
    Operation("GET", "/schemas/ids/{id}/subjects", VIEWER, subjects_of_id),
    Operation("GET", "/schemas/ids/{id}/versions", VIEWER, versions_of_id),
    Operation("GET", "/contexts", VIEWER, contexts),
    Operation("GET", "/v1/metadata/version", VIEWER, release),
    Operation("GET", "/subjects", VIEWER, subjects),
    Operation("POST", _S, VIEWER, look_up),
    Operation("DELETE", _S, OPERATOR, delete_subject),
    Operation("GET", f"{_S}/versions", VIEWER, versions),
    Operation("POST", f"{_S}/versions", OPERATOR, register),
    Operation("GET", _V, VIEWER, version),
    Operation("DELETE", _V, OPERATOR, delete_version),
    Operation("GET", f"{_V}/schema", VIEWER, raw_version),
    Operation("GET", f"{_V}/referencedby", VIEWER, referenced_by),
    Operation("POST", f"/compatibility{_S}/versions", VIEWER, compatible),
    Operation("POST", f"/compatibility{_V}", VIEWER, compatible),
    *(
        Operation(method, path, role, do)
        for path in ("/config", "/config/{subject}")
        for method, role, do in (
            ("GET", VIEWER, level),
            ("PUT", ADMIN, set_level),
            ("DELETE", ADMIN, unset_level),
        )
    ),
    *(
        Operation(method, path, role, do)
        for path in ("/mode", "/mode/{subject}")
        for method, role, do in (
            ("GET", VIEWER, mode),
            ("PUT", ADMIN, set_mode),
            ("DELETE", ADMIN, unset_mode),
        )
    ),
)
"""A permanent deletion needs ADMIN too: see `rest.py`."""
