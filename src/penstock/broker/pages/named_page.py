"""HTTP pages about one group or topic, as JSON, for which Kafka's protocol has no request."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qs

import msgspec

from penstock.coordinator.group.errors import GroupIdNotFound
from penstock.errors import KafkaError
from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.server import Handler

JSON = "application/json"


def named_page(kind: str, read: Callable[[str], object]) -> Handler:
    """A page for `?group=NAME`. The name is not part of the path, as a group's name may contain
    slashes.
    """

    def handler(request: HttpRequest) -> HttpResponse:
        names = parse_qs(request.query, keep_blank_values=True).get(kind, [])
        if len(names) != 1:
            return plain(HTTPStatus.BAD_REQUEST, f"name one {kind}: ?{kind}=NAME")
        try:
            found = read(names[0])
        except GroupIdNotFound as error:
            return plain(HTTPStatus.NOT_FOUND, str(error))
        except KafkaError as error:
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return HttpResponse(content_type=JSON, body=msgspec.json.encode(found))

    return handler
