"""The meaning of the options of `kafka-acls.sh`."""

import pytest

from penstock.kafka_tools.acl_rules import rules
from penstock.kafka_tools.acls import TOOL
from penstock.kafka_tools.parser import UsageError, parse
from penstock.kafka_tools.tool import ToolError

CLUSTER = "CLUSTER kafka-cluster LITERAL"


def meant(line: str) -> dict[str, list[str]]:
    """Rules by resource, as text."""
    found = rules(parse(TOOL.table, line.split()))
    return {
        f"{of.type.name} {of.name} {of.pattern.name}": [
            f"{each.permission.name} {each.principal} {each.operation.name} {each.host}"
            for each in granted
        ]
        for of, granted in found.items()
    }


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("--topic t", {"TOPIC t LITERAL": []}),
        (
            "--allow-principal User:a --topic t --resource-pattern-type prefixed",
            {"TOPIC t PREFIXED": ["ALLOW User:a ALL *"]},
        ),
        (
            "--deny-principal User:a --deny-host 1.2.3.4 --operation ClusterAction --cluster",
            {CLUSTER: ["DENY User:a CLUSTER_ACTION 1.2.3.4"]},
        ),
        (
            "--allow-principal User:a --producer --idempotent --topic t --group g",
            {
                "TOPIC t LITERAL": [f"ALLOW User:a {n} *" for n in ("WRITE", "DESCRIBE", "CREATE")],
                CLUSTER: ["ALLOW User:a IDEMPOTENT_WRITE *"],
            },
        ),
        (
            "--allow-principal User:a --producer --consumer --topic t --group g",
            {
                "TOPIC t LITERAL": [
                    f"ALLOW User:a {n} *" for n in ("WRITE", "DESCRIBE", "CREATE", "READ")
                ],
                "GROUP g LITERAL": ["ALLOW User:a READ *"],
            },
        ),
    ],
)
def test_options_become_rules(line: str, found: dict[str, list[str]]) -> None:
    assert meant(line) == found


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--allow-principal User:a", "You must provide at least one resource"),
        ("--cluster --resource-pattern-type prefixed", "You must provide at least one resource"),
        ("--allow-principal User:a --group g --operation Write", "ResourceType GROUP only"),
        ("--allow-principal User:a --topic t --operation Nonsense", "ResourceType TOPIC only"),
        ("--allow-principal a --topic t", "expected a string in format principalType"),
    ],
)
def test_contradictory_options_are_refused(line: str, sentence: str) -> None:
    with pytest.raises((UsageError, ToolError), match=sentence):
        meant(line)
