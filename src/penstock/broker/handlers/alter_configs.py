"""AlterConfigs (key 33, v0-v2): replace all settings of topics, groups or brokers.

Refused: settings without a value or named twice, resources named twice, loggers.
"""

from penstock.broker.context import Context
from penstock.broker.translate.config_resources import named_twice, resource
from penstock.controller.configs import check_once
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def alter_configs(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    twice = named_twice((each.resource_type, each.resource_name) for each in request.resources)
    responses = []
    for requested in request.resources:
        code, text = ErrorCode.NONE, None
        try:
            if (requested.resource_type, requested.resource_name) in twice:
                raise InvalidRequest("Each resource must appear at most once.")
            await ctx.services.control.controller.replace_config(
                resource(requested.resource_type, requested.resource_name, ctx.services),
                given(requested),
                validate_only=request.validate_only,
            )
        except KafkaError as error:
            code, text = error.code, str(error)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=text,
                resource_type=requested.resource_type,
                resource_name=requested.resource_name,
            )
        )
    return AlterConfigsResponse(responses=responses)


def given(requested: AlterConfigsResource) -> dict[str, str]:
    check_once(each.name for each in requested.configs)
    empty = ",".join(each.name for each in requested.configs if each.value is None)
    if empty:
        raise InvalidRequest(f"Null value not supported for : {empty}")
    return {each.name: each.value for each in requested.configs if each.value is not None}
