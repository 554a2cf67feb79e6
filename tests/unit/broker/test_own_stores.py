"""A broker checks its own keystore before the controller, another broker, stores its name."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.context import Context
from penstock.broker.handlers.alter_configs import alter_configs
from penstock.broker.handlers.incremental_alter_configs import incremental_alter_configs
from penstock.errors import ConfigError, ErrorCode
from penstock.wire.apis import api_of
from penstock.wire.messages import alter_configs as replacing
from penstock.wire.messages import incremental_alter_configs as altering

BROKER, TOPIC = 4, 2
LOCATION = "listener.name.ssl.ssl.keystore.location"


def context(request: Any, forwarded: list[Any]) -> Context:
    """The context of broker 1, which is not the controller and can use no keystore."""

    async def check(_: object) -> None:
        raise ConfigError("cannot be used")

    async def call(request: Any, response: Any, **_: object) -> Any:
        forwarded.extend(each.resource_name for each in request.resources)
        return response()

    services = SimpleNamespace(
        broker_id=1,
        check_stores=check,
        cluster=SimpleNamespace(layers=SimpleNamespace(dynamic={})),
        control=SimpleNamespace(
            controller=SimpleNamespace(is_active=False), link=SimpleNamespace(call=call)
        ),
    )
    header = SimpleNamespace(api=api_of(cast("Any", type(request))))
    peer = SimpleNamespace(software_name="kafka-configs")
    return cast("Context", SimpleNamespace(services=services, header=header, peer=peer, version=1))


@pytest.mark.parametrize(
    ("handler", "request_"),
    [
        (
            alter_configs,
            replacing.AlterConfigsRequest(
                [
                    replacing.AlterConfigsResource(
                        BROKER, "1", [replacing.AlterableConfig(LOCATION, "bad.pem")]
                    ),
                    replacing.AlterConfigsResource(TOPIC, "t", []),
                ]
            ),
        ),
        (
            incremental_alter_configs,
            altering.IncrementalAlterConfigsRequest(
                [
                    altering.AlterConfigsResource(
                        BROKER, "1", [altering.AlterableConfig(LOCATION, 0, "bad.pem")]
                    ),
                    altering.AlterConfigsResource(TOPIC, "t", []),
                ]
            ),
        ),
    ],
)
def test_an_unusable_keystore_does_not_reach_the_controller(handler: Any, request_: Any) -> None:
    forwarded: list[Any] = []
    response = asyncio.run(handler(request_, context(request_, forwarded)))
    assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST]
    assert forwarded == ["t"]
