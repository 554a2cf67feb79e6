"""Resources and operations of access rules, as the command line spells them."""

import pytest

from penstock.errors import ConfigError
from penstock.security.acl import AclOperation, ResourceType
from penstock.security.acl_text import check_known, operation_of, resource_of, text_of


@pytest.mark.parametrize("text", ["topic:payments", "group:*", "cluster", "user:ada", "topic:pay*"])
def test_a_resource_is_shown_as_it_is_written(text: str) -> None:
    assert text_of(resource_of(text)) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("queue:a", "'queue' is not a type of resource"),
        ("topic", "names no resource: write topic:NAME"),
        ("topic:", "names no resource: write topic:NAME"),
    ],
)
def test_a_resource_needs_a_type_and_a_name(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resource_of(text)


def test_operations_are_written_in_any_case_with_dashes_or_underscores() -> None:
    assert operation_of("all") is AclOperation.ALL
    assert operation_of("READ") is AclOperation.READ
    assert operation_of("describe-configs") is AclOperation.DESCRIBE_CONFIGS
    assert operation_of("Describe_Configs") is AclOperation.DESCRIBE_CONFIGS
    for unknown in ("any", "unknown", "sing"):
        with pytest.raises(ConfigError, match="is not an operation"):
            operation_of(unknown)


def test_only_operations_of_the_resource_are_accepted() -> None:
    check_known(ResourceType.GROUP, AclOperation.READ)
    check_known(ResourceType.GROUP, AclOperation.ALL)
    with pytest.raises(ConfigError, match=r"a group knows only .*delete.*, all"):
        check_known(ResourceType.GROUP, AclOperation.WRITE)
