"""The HTTP page of rebalances, as JSON: why, when and how long groups rebalanced."""

from http import HTTPStatus
from urllib.parse import parse_qs

import msgspec

from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.errors import KafkaError
from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.server import Handler

JSON = "application/json"


def rebalances(groups: GroupCoordinator) -> Handler:
    """`?group=NAME`, not a part of the path: a group's name may contain slashes."""

    def handler(request: HttpRequest) -> HttpResponse:
        names = parse_qs(request.query, keep_blank_values=True).get("group", [])
        if len(names) != 1:
            return plain(HTTPStatus.BAD_REQUEST, "name one group: ?group=NAME")
        try:
            found = groups.rebalances(names[0])
        except GroupIdNotFound as error:
            return plain(HTTPStatus.NOT_FOUND, str(error))
        except KafkaError as error:
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return HttpResponse(content_type=JSON, body=msgspec.json.encode(found))

    return handler
