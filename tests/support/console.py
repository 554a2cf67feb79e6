"""Sends requests to a console over HTTP."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

QUIET = {"log_level": 0}
GROUP = "odd/group <b>"


def get(url: str) -> tuple[int, str]:
    return sent(Request(url))


def sent(request: Request) -> tuple[int, str]:
    try:
        with urlopen(request, timeout=20) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def post(url: str, path: str, body: object) -> tuple[int, Any]:
    """Posts a change as JSON, as a script does on loopback."""
    token = json.loads(get(f"{url}/api/v1/session")[1])["csrf_token"]
    headers = {"X-CSRF-Token": token, "Content-Type": "application/json"}
    status, text = sent(Request(f"{url}/api/v1/{path}", json.dumps(body).encode(), headers))
    return status, json.loads(text)
