"""Principals and resources as people write them for `penstock acl`."""

import pytest

from penstock.security.acl import PatternType, ResourcePattern, ResourceType
from penstock.security.acl_text import principal_of, resource_of, text_of


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("bob", "User:bob"),
        ("User:bob", "User:bob"),
        ("User:CN=a:b,O=c", "User:CN=a:b,O=c"),
        ("CN=a:b", "User:CN=a:b"),
        ("CN=host.example:9093,O=Example", "User:CN=host.example:9093,O=Example"),
        ("Group:staff", "Group:staff"),
        ("*", "User:*"),
    ],
)
def test_a_name_without_a_type_is_a_user(text: str, principal: str) -> None:
    assert str(principal_of(text)) == principal


@pytest.mark.parametrize(
    ("text", "name", "pattern"),
    [
        ("topic:pay", "pay", PatternType.LITERAL),
        ("topic:pay*", "pay", PatternType.PREFIXED),
        ("topic:pay**", "pay*", PatternType.PREFIXED),
        (r"topic:pay\*", "pay*", PatternType.LITERAL),
        ("topic:*", "*", PatternType.LITERAL),
        (r"topic:pay\\*", "pay\\", PatternType.PREFIXED),
        (r"topic:pay\\\*", r"pay\*", PatternType.LITERAL),
        ("topic:pay\\", "pay\\", PatternType.LITERAL),
        (r"group:\\*", "\\", PatternType.PREFIXED),
    ],
)
def test_a_prefix_and_a_name_with_a_star_look_different(
    text: str, name: str, pattern: PatternType
) -> None:
    kind = ResourceType.GROUP if text.startswith("group") else ResourceType.TOPIC
    resource = ResourcePattern(kind, name, pattern)
    assert (resource_of(text), text_of(resource)) == (resource, text)
