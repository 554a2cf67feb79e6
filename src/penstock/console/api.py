"""The REST API under `/api/v1`: the data of the pages as JSON. Changes are in `change`."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import penstock
from penstock.advice.group_lag import why
from penstock.advice.group_progress import group_progress
from penstock.client.errors import BrokerRefused
from penstock.console import (
    access_reads,
    group_reads,
    model,
    partition,
    pipelines,
    planning,
    reads,
    schemas,
    waiting,
)
from penstock.console.audit import Audit, AuditLine
from penstock.console.changes.table import CHANGES
from penstock.console.guard import Asker
from penstock.console.jobs import Job, Jobs
from penstock.console.listing import OPTIONS, picked
from penstock.console.messages.openapi import with_messages
from penstock.console.openapi import document
from penstock.console.route import ApiRoute, OwnRoute
from penstock.console.timeline import Event
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.errors import ConfigError, KafkaError

WATCHED_S = 3.0
Params = Mapping[str, str]


def of_look(read: Callable[[ClusterLook], object]) -> Callable[..., Awaitable[object]]:
    async def answer(_: ClusterWatch, look: ClusterLook, __: Params) -> object:
        return read(look)

    return answer


async def partitions(_: ClusterWatch, look: ClusterLook, given: Params) -> object:
    return model.partitions(look, given["topic"])


async def group(_: ClusterWatch, look: ClusterLook, given: Params) -> object:
    return model.group(look, given["group"])


async def group_why(watch: ClusterWatch, look: ClusterLook, given: Params) -> object:
    if model.group(look, given["group"]) is None:
        return None
    found = why(await group_progress(watch.client, given["group"], WATCHED_S))
    return model.Why(given["group"], found.cause, found.sentence, found.advice)


async def topics(_: ClusterWatch, look: ClusterLook, given: Params) -> object:
    return picked(model.topics(look), given, "name", all_pages=True).rows


async def groups(_: ClusterWatch, look: ClusterLook, given: Params) -> object:
    return picked(model.groups(look), given, "id", all_pages=True).rows


async def timeline(watch: ClusterWatch, _: ClusterLook, __: Params) -> object:
    return list(watch.timeline)


async def plan(watch: ClusterWatch, look: ClusterLook, given: Params) -> object:
    found = await planning.plan(watch, look, given)
    if found.problem is not None:
        raise ConfigError(found.problem)
    return found


API = (
    ApiRoute("/api/v1/cluster", "The cluster in numbers.", model.Cluster, of_look(model.cluster)),
    ApiRoute(
        "/api/v1/timeline",
        "What happened to brokers, controller, leaders and ISRs, the oldest first.",
        list[Event],
        timeline,
    ),
    ApiRoute(
        "/api/v1/topics",
        "All topics; of those that match, a page of a hundred if one is asked for.",
        list[model.Topic],
        topics,
        (),
        OPTIONS,
    ),
    ApiRoute(
        "/api/v1/plan",
        "What a workload needs: from figures, or from what the cluster shows.",
        planning.Plan,
        plan,
        (),
        (*(each.name for each in planning.FIELDS), planning.FROM_CLUSTER),
    ),
    ApiRoute(
        "/api/v1/topics/{topic}/partitions/{partition}",
        "A partition: replicas, segments with their files, producers, open transactions.",
        partition.PartitionDetail,
        partition.partition,
        ("topic", "partition"),
    ),
    ApiRoute(
        "/api/v1/topics/{topic}/partitions",
        "The partitions of a topic.",
        list[model.Partition],
        partitions,
        ("topic",),
    ),
    ApiRoute(
        "/api/v1/topics/{topic}/settings",
        "The settings of a topic: value, default, source, documentation.",
        list[reads.Setting],
        reads.topic_settings,
        ("topic",),
    ),
    ApiRoute(
        "/api/v1/brokers/{broker}/settings",
        "The settings of a broker.",
        list[reads.Setting],
        reads.broker_settings,
        ("broker",),
    ),
    ApiRoute(
        "/api/v1/group/offsets",
        "The committed offsets of a group.",
        list[reads.CommittedOffset],
        reads.group_offsets,
        ("group",),
    ),
    ApiRoute(
        "/api/v1/transactions",
        "Transactional ids, and transactions that hang.",
        reads.Transactions,
        reads.transactions,
    ),
    ApiRoute(
        "/api/v1/reassignments",
        "Partitions that are being moved.",
        list[reads.Reassignment],
        reads.reassignments,
    ),
    ApiRoute(
        "/api/v1/delay",
        "Delay and retry topics with what waits in them, and topics of dead letters.",
        waiting.Waiting,
        waiting.waiting,
    ),
    ApiRoute(
        "/api/v1/delay/{topic}",
        "The records that wait in a delay or retry topic.",
        waiting.WaitingRecords,
        waiting.waiting_records,
        ("topic",),
    ),
    ApiRoute(
        "/api/v1/dead-letters/{topic}",
        "The dead letters of a topic.",
        waiting.Letters,
        waiting.letters,
        ("topic",),
    ),
    ApiRoute("/api/v1/schemas", "The subjects of the registry.", list[str], schemas.subjects),
    ApiRoute(
        "/api/v1/schema",
        "A subject: its compatibility level, and its versions with what each changed.",
        schemas.Subject,
        schemas.subject,
        ("subject",),
    ),
    ApiRoute(
        "/api/v1/pipelines",
        "Spark pipelines and their last micro-batches.",
        list[pipelines.Pipeline],
        pipelines.pipelines,
    ),
    ApiRoute(
        "/api/v1/access",
        "Access rules, users that log in by SCRAM, quotas.",
        access_reads.AccessPage,
        access_reads.access,
    ),
    ApiRoute(
        "/api/v1/groups",
        "All groups with their lag; of those that match, a page of a hundred if one is asked for.",
        list[model.Group],
        groups,
        (),
        OPTIONS,
    ),
    ApiRoute(
        "/api/v1/group/rebalances",
        "The last rebalances of a group, with their reasons.",
        Rebalances,
        group_reads.rebalances,
        ("group",),
    ),
    ApiRoute(
        "/api/v1/group/in-flight",
        "Records that a share group has in flight: who has them, how long, which delivery it is.",
        list[group_reads.RecordsInFlight],
        group_reads.in_flight,
        ("group",),
    ),
    ApiRoute(
        "/api/v1/group", "A group, its members and lag.", model.GroupDetail, group, ("group",)
    ),
    ApiRoute(
        "/api/v1/group/why",
        "Why a group lags; watches it for three seconds.",
        model.Why,
        group_why,
        ("group",),
    ),
    ApiRoute(
        "/api/v1/problems",
        "What is wrong, since when, what it means, what to do.",
        list[model.Problem],
        of_look(model.problems),
    ),
)


OWN = (
    OwnRoute("/api/v1/jobs", "Work that goes on, and how far it is.", list[Job]),
    OwnRoute("/api/v1/session", "Who asks, and the token for changes.", model.Session),
    OwnRoute("/api/v1/audit", "Who changed what, and what came of it.", list[AuditLine]),
    OwnRoute("/api/v1/openapi.json", "This document.", dict[str, Any]),
)
"""Routes about the console itself rather than the cluster."""


def described() -> dict[str, Any]:
    """The whole OpenAPI document."""
    return with_messages(document((*API, *OWN), CHANGES, penstock.__version__))


def api_routes(watch: ClusterWatch, audit: Audit, jobs: Jobs) -> list[Route]:
    whole = json(described())

    async def openapi(_: Request) -> Response:
        return whole

    async def session(request: Request) -> Response:
        asker: Asker = request.state.asker
        role = "" if asker.user is None else asker.user.role.name.lower()
        return json(model.Session(asker.name, role, asker.csrf))

    async def audited(_: Request) -> Response:
        return json(list(audit.lines))

    async def started(_: Request) -> Response:
        return json(list(jobs.all))

    own = (started, session, audited, openapi)
    return [
        *(Route(a.path, b, methods=["GET"]) for a, b in zip(OWN, own, strict=True)),
        *(Route(each.path, endpoint(each, watch), methods=["GET"]) for each in API),
    ]


def endpoint(route: ApiRoute, watch: ClusterWatch) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        given = {**request.path_params, **request.query_params}
        names = [*request.path_params, *(name for name, _ in request.query_params.multi_items())]
        try:
            route.check(names)
        except ConfigError as error:
            return refused(HTTPStatus.BAD_REQUEST, str(error))
        if watch.last is None:
            why_not = watch.failure or "it was not looked at yet"
            return refused(HTTPStatus.SERVICE_UNAVAILABLE, f"no answer from the cluster: {why_not}")
        try:
            found = await route.answer(watch, watch.last, given)
        except ConfigError as error:
            return refused(HTTPStatus.BAD_REQUEST, str(error))
        except BrokerRefused as error:
            return refused(HTTPStatus.CONFLICT, str(error))
        except KafkaError as error:
            return refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if found is None:
            wanted = " ".join(f"{name} {given[name]}" for name in route.parameters)
            return refused(HTTPStatus.NOT_FOUND, f"there is no {wanted}")
        return json(found)

    return handle


def refused(status: HTTPStatus, text: str) -> Response:
    return json({"error": text}, status)


def json(value: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
