"""AlterConfigs (key 33, v0-v2): replace all settings of topics, groups or brokers.

Refused: settings without a value or named twice, resources named twice, loggers.
"""

import msgspec

from penstock.broker.context import Context
from penstock.broker.handling.forwarding import at_controller
from penstock.broker.translate.config_resources import named_twice, resource
from penstock.broker.translate.own_stores import check_own_stores
from penstock.controller.configs import check_once
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def alter_configs(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    """Check files that settings of this broker name; the controller makes all alterations."""
    left, refused = [], []
    for each in request.resources:
        put = {config.name: config.value for config in each.configs}
        try:
            await check_own_stores(each.resource_type, each.resource_name, put, ctx.services)
            left.append(each)
        except KafkaError as error:
            refused.append(answer(each, error.code, str(error)))
    if refused:
        request = msgspec.structs.replace(request, resources=left)
    response: AlterConfigsResponse = await at_controller(altered)(request, ctx)
    return AlterConfigsResponse(response.throttle_time_ms, [*response.responses, *refused])


def answer(
    requested: AlterConfigsResource, code: int, text: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=text,
        resource_type=requested.resource_type,
        resource_name=requested.resource_name,
    )


async def altered(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    twice = named_twice((each.resource_type, each.resource_name) for each in request.resources)
    responses = []
    for requested in request.resources:
        code, text = ErrorCode.NONE, None
        try:
            if (requested.resource_type, requested.resource_name) in twice:
                raise InvalidRequest("Each resource must appear at most once.")
            kind, name, put = requested.resource_type, requested.resource_name, given(requested)
            await ctx.services.control.controller.replace_config(
                resource(kind, name, ctx.services),
                put,
                validate_only=request.validate_only,
            )
        except KafkaError as error:
            code, text = error.code, str(error)
        responses.append(answer(requested, code, text))
    return AlterConfigsResponse(responses=responses)


def given(requested: AlterConfigsResource) -> dict[str, str]:
    check_once(each.name for each in requested.configs)
    empty = ",".join(each.name for each in requested.configs if each.value is None)
    if empty:
        raise InvalidRequest(f"Null value not supported for : {empty}")
    return {each.name: each.value for each in requested.configs if each.value is not None}
