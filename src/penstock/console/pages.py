"""The HTML pages, rendered from the last look. htmx reloads them often and swaps what changed."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from jinja2 import Environment
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from penstock.advice.group_lag import why
from penstock.advice.group_progress import group_progress
from penstock.client.share_groups import SHARE, ShareOffset, share_offsets
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
from penstock.console.api import WATCHED_S
from penstock.console.audit import Audit
from penstock.console.history import Point
from penstock.console.jobs import Jobs
from penstock.console.listing import picked
from penstock.console.page import Page
from penstock.console.replicas import picture, replica_pages
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.errors import ConfigError, KafkaError
from penstock.types import TopicPartition

PAGES = (
    Page("/topics/{topic}/settings", "settings.html", reads.topic_settings, ("topic",)),
    Page(
        "/topics/{topic}/partitions/{partition}",
        "partition.html",
        partition.partition,
        ("topic", "partition"),
        polls=True,
    ),
    Page("/brokers/{broker}", "settings.html", reads.broker_settings, ("broker",)),
    Page("/group/reset", "group_reset.html", reads.group_offsets, ("group",)),
    Page("/transactions", "transactions.html", reads.transactions),
    Page("/delay", "delay.html", waiting.waiting),
    Page("/delay/{topic}", "delay_topic.html", waiting.waiting_records, ("topic",)),
    Page("/dead-letters/{topic}", "letters.html", waiting.letters, ("topic",)),
    Page("/schemas", "schemas.html", schemas.subjects),
    Page("/schema", "schema.html", schemas.subject, ("subject",)),
    Page("/pipelines", "pipelines.html", pipelines.pipelines, polls=True),
    Page("/access", "access.html", access_reads.access),
    Page("/plan", "plan.html", planning.plan),
    Page("/reassignments", "reassignments.html", reads.reassignments, polls=True),
)
SHOWN_EVENTS = 30

T = TypeVar("T", bound=Struct)


class ConsolePages:
    """Renders pages from `watch`, or a waiting page while the cluster has not answered yet."""

    def __init__(
        self, watch: ClusterWatch, templates: Environment, audit: Audit, jobs: Jobs
    ) -> None:
        self._watch, self._templates = watch, templates
        self._audit, self._jobs = audit, jobs

    def routes(self) -> list[Route]:
        return [
            Route("/", self.overview),
            Route("/topics", self.topics),
            Route("/topics/{topic}", self.topic),
            Route("/groups", self.groups),
            Route("/group", self.group),
            Route("/group/why", self.group_why),
            Route("/audit", self.audit),
            Route("/jobs", self.jobs),
            Route("/new-topic", self.new_topic),
            *(Route(each.path, self._endpoint(each)) for each in PAGES),
        ]

    def _endpoint(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            look, given = self._watch.last, {**request.query_params, **request.path_params}
            if look is None:
                return self._page(request, page.template)
            if missing := [each for each in page.parameters if each not in given]:
                return self._missing(request, f"The address names no {missing[0]}.")
            try:
                found = await page.read(self._watch, look, given)
            except (ConfigError, KafkaError) as error:
                return self._page(request, "unavailable.html", text=str(error))
            if found is None:
                return self._missing(request, "There is no such thing.")
            return self._page(request, page.template, polls=page.polls, found=found, given=given)

        return handle

    def _page(
        self,
        request: Request,
        name: str,
        status: HTTPStatus = HTTPStatus.OK,
        *,
        polls: bool = True,
        **values: Any,
    ) -> Response:
        look, failure = self._watch.last, self._watch.failure
        url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        if look is None:
            name, status = "waiting.html", HTTPStatus.SERVICE_UNAVAILABLE
        html = self._templates.get_template(name).render(
            url=url,
            look=look,
            failure=failure,
            asker=request.state.asker,
            polls=polls,
            **values,
        )
        return HTMLResponse(html, status)

    async def overview(self, request: Request) -> Response:
        look = self._watch.last
        return self._page(
            request,
            "overview.html",
            cluster=look and model.cluster(look),
            problems=look and model.problems(look),
            chart=chart(self._watch.throughput),
            byte_chart=chart(self._watch.byte_throughput),
            timeline=list(reversed(self._watch.timeline))[:SHOWN_EVENTS],
        )

    async def topics(self, request: Request) -> Response:
        look = self._watch.last
        return self._list(
            request, "topics.html", [] if look is None else model.topics(look), "name"
        )

    async def topic(self, request: Request) -> Response:
        look, name = self._watch.last, request.path_params["topic"]
        if look is None:
            return self._page(request, "topic.html")
        partitions = model.partitions(look, name)
        if partitions is None:
            return self._missing(request, f"There is no topic {name}.")
        brokers = list(look.snapshot.cluster.brokers.values())
        pages = await replica_pages(self._watch.client, brokers, name)
        pictures = [(each, picture(each, pages)) for each in partitions]
        (topic,) = [each for each in model.topics(look) if each.name == name]
        return self._page(request, "topic.html", topic=topic, pictures=pictures)

    async def groups(self, request: Request) -> Response:
        look = self._watch.last
        return self._list(request, "groups.html", [] if look is None else model.groups(look), "id")

    def _list(self, request: Request, template: str, rows: Sequence[T], name: str) -> Response:
        try:
            found = picked(rows, request.query_params, name)
        except ConfigError as error:
            return self._page(request, "missing.html", HTTPStatus.BAD_REQUEST, text=str(error))
        return self._page(request, template, found=found)

    async def group(self, request: Request) -> Response:
        look, name = self._watch.last, request.query_params.get("group", "")
        if look is None:
            return self._page(request, "group.html")
        found = model.group(look, name)
        if found is None:
            return self._missing(request, f"There is no group {name}.")
        given = {"group": name}
        is_share = found.group.type == SHARE
        return self._page(
            request,
            "group.html",
            detail=found,
            chart=chart(self._watch.lags.records(name)),
            seconds_chart=chart(self._watch.lags.seconds(name)),
            share=await self._share_offsets(name) if is_share else {},
            in_flight=await group_reads.in_flight(self._watch, look, given) if is_share else [],
            rebalances=None if is_share else await self._rebalances(look, given),
        )

    async def _rebalances(self, look: ClusterLook, given: Mapping[str, str]) -> Rebalances | None:
        """None if the coordinator does not answer; the rest of the page is still shown."""
        try:
            return await group_reads.rebalances(self._watch, look, given)
        except KafkaError:
            return None

    async def _share_offsets(self, group: str) -> dict[TopicPartition, ShareOffset]:
        """Empty if the coordinator does not answer; the rest of the page is still shown."""
        try:
            return await share_offsets(self._watch.client, group)
        except KafkaError:
            return {}

    async def group_why(self, request: Request) -> Response:
        """An HTML fragment that the group's page requests."""
        look, name = self._watch.last, request.query_params.get("group", "")
        if look is None or model.group(look, name) is None:
            return self._fragment(sentence=f"There is no group {name}.", advice="")
        try:
            found = why(await group_progress(self._watch.client, name, WATCHED_S))
        except KafkaError as error:
            return self._fragment(sentence=str(error), advice="")
        return self._fragment(sentence=found.sentence, advice=found.advice)

    async def audit(self, request: Request) -> Response:
        return self._page(request, "audit.html", lines=list(reversed(self._audit.lines)))

    async def jobs(self, request: Request) -> Response:
        return self._page(request, "jobs.html", jobs=list(reversed(self._jobs.all)))

    async def new_topic(self, request: Request) -> Response:
        return self._page(request, "new_topic.html", polls=False)

    def _fragment(self, **values: str) -> Response:
        return HTMLResponse(self._templates.get_template("why.html").render(**values))

    def _missing(self, request: Request, text: str) -> Response:
        return self._page(request, "missing.html", HTTPStatus.NOT_FOUND, text=text)


def chart(points: Iterable[Point]) -> str:
    """Points as uPlot expects them: a column of seconds and a column of values."""
    found = list(points)
    columns = [[each.at_ms / 1000 for each in found], [each.value for each in found]]
    return msgspec.json.encode(columns).decode()
