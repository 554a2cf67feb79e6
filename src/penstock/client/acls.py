"""Lists, creates and deletes ACLs. Types are numbers, as on the wire."""

from dataclasses import dataclass

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.route import CONTROLLER
from penstock.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from penstock.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from penstock.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

ANY = 1


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """One ACL."""

    resource_type: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBindingFilter:
    """Selects ACLs; a condition without a value matches all."""

    resource_type: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY


async def list_acls(client: Client, wanted: AclBindingFilter) -> list[AclBinding]:
    """The matching ACLs, sorted."""

    def raise_refusal(response: DescribeAclsResponse) -> None:
        check(response.error_code, "ACLs", response.error_message)

    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    response = await client.call(request, DescribeAclsResponse, check=raise_refusal)
    return sorted(
        AclBinding(
            of.resource_type,
            of.resource_name,
            of.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for of in response.resources
        for each in of.acls
    )


async def create_acl(client: Client, acl: AclBinding) -> None:
    def raise_refusal(response: CreateAclsResponse) -> None:
        for result in response.results:
            check(result.error_code, f"ACL of {acl.principal}", result.error_message)

    made = AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
    request = CreateAclsRequest(creations=[made])
    await client.call(request, CreateAclsResponse, to=CONTROLLER, check=raise_refusal)


async def delete_acls(client: Client, wanted: AclBindingFilter) -> list[AclBinding]:
    """Delete the matching ACLs; returns them, sorted."""

    def raise_refusal(response: DeleteAclsResponse) -> None:
        for result in response.filter_results:
            check(result.error_code, "ACLs", result.error_message)

    request = DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=wanted.resource_type,
                resource_name_filter=wanted.name,
                pattern_type_filter=wanted.pattern,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission,
            )
        ]
    )
    response = await client.call(request, DeleteAclsResponse, to=CONTROLLER, check=raise_refusal)
    return sorted(
        AclBinding(
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for result in response.filter_results
        for each in result.matching_acls
    )
