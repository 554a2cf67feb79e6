"""Requests to a registry, as curl would send them."""

import json
import urllib.error
import urllib.request
from typing import Any

WAIT_S = 30


def rest(
    method: str, url: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Status and JSON of the response."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data)
    request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
