"""Guards take requests apart in one walk, however many names these have."""

import logging
from typing import Any, cast

import pytest

from penstock.broker.acls.access import MOST_REFUSALS, Access
from penstock.broker.authorization.guard import Guard
from penstock.broker.authorization.table import GUARDS
from penstock.broker.context import Context
from penstock.errors import ErrorCode
from penstock.metadata.image import ClusterImage
from penstock.security.acl import (
    AccessRule,
    Acl,
    AclOperation,
    Acls,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.principal import Principal, user
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

NAMES = 1000


class Name(str):
    """Counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Client:
    principal: Principal = user("mallory")
    host = "127.0.0.1"


class Services:
    class cluster:  # noqa: N801 - stands in for the attribute
        image = ClusterImage()


class Asked:
    version = 4
    services = Services


def access() -> Access:
    """To names that begin with `mine`."""
    rule = AccessRule("User:mallory", "*", AclOperation.ALL, Permission.ALLOW)
    kinds = (ResourceType.GROUP, ResourceType.TOPIC)
    mine = [Acl(ResourcePattern(kind, "mine", PatternType.PREFIXED), rule) for kind in kinds]
    return Access(Acls(mine), Client(), "a request", set())


def guarded(guard: Guard, request: Any, response: Any) -> tuple[Any, Any]:
    """What the handler was asked, and the answer."""
    asked = []

    def handler(passed: Any, _ctx: Any) -> Any:
        asked.append(passed)
        return response

    answer = guard(request, cast("Context", Asked), cast("Any", handler), access())
    return asked, answer


def names() -> list[str]:
    return [Name(f"{'mine' if at % 2 else 'theirs'}-{at}") for at in range(NAMES)]


def test_a_request_fills_no_log_with_its_refusals(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.authorizer")
    asks = access()
    for number in range(MOST_REFUSALS + 10):
        assert not asks.group(AclOperation.READ, f"group-{number}")
    *told, last = [each.getMessage() for each in caplog.records]
    assert len(told) == MOST_REFUSALS
    assert told[-1].startswith("Principal = User:mallory is Denied operation = READ")
    assert last.endswith("the others are not logged")


@pytest.mark.parametrize(
    ("key", "request_of", "listed", "response", "answers"),
    [
        (
            10,
            lambda names: FindCoordinatorRequest(coordinator_keys=names),
            "coordinator_keys",
            FindCoordinatorResponse(),
            "coordinators",
        ),
        (
            20,
            lambda names: DeleteTopicsRequest(topic_names=names),
            "topic_names",
            DeleteTopicsResponse(),
            "responses",
        ),
    ],
)
def test_names_are_not_searched_for_in_lists_of_names(
    key: int, request_of: Any, listed: str, response: Any, answers: str
) -> None:
    wanted = names()
    Name.compared = 0
    asked, answer = guarded(GUARDS[key], request_of(wanted), response)
    assert Name.compared < 10 * NAMES
    assert [str(each) for each in getattr(asked[0], listed)] == [str(e) for e in wanted[1::2]]
    denied = {each.error_code for each in getattr(answer, answers)}
    assert len(getattr(answer, answers)) == NAMES // 2
    assert denied <= {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
