"""IncrementalAlterConfigs (key 44, v0-v1): set, delete, append to and subtract from lists
(KIP-339): settings of topics, groups, client metrics subscriptions and brokers, and the levels of
this broker's loggers.

Refused: settings or resources that are named twice, list operations on other types, invalid values.
"""

import msgspec

from penstock.broker.context import Context
from penstock.broker.handling.forwarding import at_controller
from penstock.broker.translate import log_levels
from penstock.broker.translate.config_resources import (
    named_twice,
    own_id,
    resource,
)
from penstock.broker.translate.own_stores import check_own_stores
from penstock.config.resource_type import ConfigResourceType
from penstock.controller.configs import AlterOperation, ConfigAlteration, check_once
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

OPERATIONS = frozenset(AlterOperation)


async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, ctx: Context
) -> IncrementalAlterConfigsResponse:
    """Check files that settings of this broker name, and alter its loggers; the controller alters
    the rest.
    """
    left, refused = [], []
    for each in request.resources:
        try:
            given = {config.name: config.value for config in each.configs}
            await check_own_stores(each.resource_type, each.resource_name, given, ctx.services)
            left.append(each)
        except KafkaError as error:
            refused.append(answer(each, error.code, str(error)))
    if not refused:
        return await here_or_there(request, ctx)
    response = await here_or_there(msgspec.structs.replace(request, resources=left), ctx)
    return msgspec.structs.replace(response, responses=[*response.responses, *refused])


def answer(
    requested: AlterConfigsResource, code: int, text: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=text,
        resource_type=requested.resource_type,
        resource_name=requested.resource_name,
    )


async def here_or_there(
    request: IncrementalAlterConfigsRequest, ctx: Context
) -> IncrementalAlterConfigsResponse:
    loggers = [each for each in request.resources if is_logger(each)]
    others = [each for each in request.resources if not is_logger(each)]
    if not loggers or not others or ctx.services.control.controller.is_active:
        alter_all = altered if len(loggers) == len(request.resources) else at_controller(altered)
        response: IncrementalAlterConfigsResponse = await alter_all(request, ctx)
        return response
    here = await altered(msgspec.structs.replace(request, resources=loggers), ctx)
    there: IncrementalAlterConfigsResponse = await at_controller(altered)(
        msgspec.structs.replace(request, resources=others), ctx
    )
    return msgspec.structs.replace(there, responses=[*there.responses, *here.responses])


def is_logger(requested: AlterConfigsResource) -> bool:
    return requested.resource_type == ConfigResourceType.BROKER_LOGGER


async def altered(
    request: IncrementalAlterConfigsRequest, ctx: Context
) -> IncrementalAlterConfigsResponse:
    twice = named_twice((each.resource_type, each.resource_name) for each in request.resources)
    responses = []
    for requested in request.resources:
        code, text = ErrorCode.NONE, None
        try:
            if (requested.resource_type, requested.resource_name) in twice:
                raise InvalidRequest("Each resource must appear at most once.")
            await alter(requested, ctx, validate_only=request.validate_only)
        except KafkaError as error:
            code, text = error.code, str(error)
        responses.append(answer(requested, code, text))
    return IncrementalAlterConfigsResponse(responses=responses)


async def alter(requested: AlterConfigsResource, ctx: Context, *, validate_only: bool) -> None:
    alterations = [alteration(each) for each in requested.configs]
    if requested.resource_type != ConfigResourceType.BROKER_LOGGER:
        await ctx.services.control.controller.alter_config(
            resource(requested.resource_type, requested.resource_name, ctx.services),
            alterations,
            validate_only=validate_only,
        )
        return
    own_id(requested.resource_name, ctx.services)
    check_once(each.name for each in alterations)
    levels = {each.name: new_level(each) for each in alterations}
    for name, level in levels.items():
        log_levels.check_level(name, level)
    if not validate_only:
        for name, level in levels.items():
            log_levels.set_level(name, level)


def alteration(requested: AlterableConfig) -> ConfigAlteration:
    if requested.config_operation not in OPERATIONS:
        raise InvalidRequest(f"{requested.name}: operation {requested.config_operation} is unknown")
    return ConfigAlteration(
        requested.name, AlterOperation(requested.config_operation), requested.value
    )


def new_level(requested: ConfigAlteration) -> str | None:
    match requested.operation:
        case AlterOperation.SET if requested.value is not None:
            return requested.value
        case AlterOperation.DELETE:
            return None
        case _:
            raise InvalidRequest(f"a logger's level is set or deleted: {requested.name}")
