"""Guards of the settings of topics, groups and brokers."""

from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    CLUSTER,
    GROUP,
    MESSAGES,
    TOPIC,
    Guard,
)
from penstock.broker.authorization.items import each_item
from penstock.broker.authorization.refusals import Refusal
from penstock.broker.authorization.routes import may_reroute
from penstock.broker.context import Context
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ErrorCode
from penstock.security.acl import AclOperation
from penstock.wire.messages import alter_configs as altering
from penstock.wire.messages import incremental_alter_configs as incremental
from penstock.wire.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult

Op = AclOperation
CODES = {ConfigResourceType.TOPIC: TOPIC, ConfigResourceType.GROUP: GROUP}


def configs(
    operation: AclOperation,
    answers: str,
    refused: Callable[[Any, ErrorCode], Any],
    empty: Any,
    *,
    replaces: bool = False,
) -> Guard:
    """`replaces`: the request has all settings of a resource, and resets the others."""

    def code(resource: Any) -> ErrorCode:
        return {ConfigResourceType.TOPIC: TOPIC, ConfigResourceType.GROUP: GROUP}.get(
            resource.resource_type, CLUSTER
        )

    def may(access: Access, resource: Any, ctx: Context) -> bool:
        match resource.resource_type:
            case ConfigResourceType.TOPIC:
                name = resource.resource_name
                if not access.topic(operation, name):
                    return False
                before = ctx.services.cluster.image.topic_configs.get(name, {})
                return operation is not Op.ALTER_CONFIGS or may_reroute(
                    access, name, resource.configs, before, replaces=replaces
                )
            case ConfigResourceType.GROUP:
                return access.group(operation, resource.resource_name)
            case _:
                return access.cluster(operation)

    refusal = Refusal(lambda each, _: refused(each, code(each)))
    return each_item("resources", may, refusal, answers, empty)


def describe_refused(resource: Any, code: ErrorCode) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=MESSAGES[code],
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def alter_refused(kind: Any, resource: Any, code: ErrorCode) -> Any:
    return kind(code, MESSAGES[code], resource.resource_type, resource.resource_name)


describe_configs = configs(
    Op.DESCRIBE_CONFIGS, "results", describe_refused, DescribeConfigsResponse
)
alter_configs = configs(
    Op.ALTER_CONFIGS,
    "responses",
    partial(alter_refused, altering.AlterConfigsResourceResponse),
    altering.AlterConfigsResponse,
    replaces=True,
)
incremental_alter_configs = configs(
    Op.ALTER_CONFIGS,
    "responses",
    partial(alter_refused, incremental.AlterConfigsResourceResponse),
    incremental.IncrementalAlterConfigsResponse,
)
