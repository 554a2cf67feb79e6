"""`kafka-acls.sh` on a broker: what Kafka's tool does only on a terminal, and whether ACLs work."""

from collections.abc import Iterator

import pytest

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import ToolResult, call_tool

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TOPIC = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
BOB = "(principal=User:bob, host=*, operation={}, permissionType=ALLOW)"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings=SETTINGS) as running:
        yield running


def acls(broker: EmbeddedBroker, line: str, stdin: str = "") -> ToolResult:
    return call_tool(
        "kafka-acls.sh", "--bootstrap-server", broker.bootstrap, *line.split(), stdin=stdin
    )


def test_nothing_is_removed_without_confirmation(broker: EmbeddedBroker) -> None:
    acls(broker, "--add --allow-principal User:bob --operation Read --operation Write --topic t")
    before = acls(broker, "--list").out
    line = "--remove --topic t --allow-principal User:bob --operation Read"
    question = (
        f"Are you sure you want to remove ACLs: \n \t{BOB.format('READ')} \n "
        f"from resource filter `{TOPIC}`? (y/n)\n"
    )
    for answer in ("n\n", "", "yes\n"):
        assert acls(broker, line, answer) == (0, question, "")
        assert acls(broker, "--list").out == before
    assert acls(broker, line, "Y\n") == (0, question, "")
    left = f"Current ACLs for resource `{TOPIC}`:\n\t{BOB.format('WRITE')}\n\n"
    assert acls(broker, "--list").out == left
    question = f"Are you sure you want to delete all ACLs for resource filter `{TOPIC}`? (y/n)\n"
    assert acls(broker, "--remove --topic t", "y\n") == (0, question, "")
    assert acls(broker, "--list").out == ""


def test_a_user_who_may_not_list_reassignments_can_describe_topics() -> None:
    everyone = {"allow.everyone.if.no.acl.found": "true", "super.users": "User:admin"}
    with EmbeddedBroker(settings={**SETTINGS, **everyone}) as broker:
        broker.create_topic("t", 1)
        acls(broker, "--add --allow-principal User:bob --operation Alter --cluster")
        described = call_tool(
            "kafka-topics.sh", "--bootstrap-server", broker.bootstrap, "--describe", "--topic", "t"
        )
        assert described.code == 0, described.out
        assert described.out.startswith("Topic: t\t")


def test_operations_may_be_spelt_as_they_are_printed(broker: EmbeddedBroker) -> None:
    for spelt in ("DescribeConfigs", "DESCRIBE_CONFIGS", "describeconfigs"):
        line = f"--add --allow-principal User:{spelt} --operation {spelt} --topic t"
        assert "operation=DESCRIBE_CONFIGS" in acls(broker, line).out


def test_the_tools_class_is_found_under_any_package(broker: EmbeddedBroker) -> None:
    line = ("kafka.admin.AclCommand", "--bootstrap-server", broker.bootstrap, "--list")
    assert call_tool("kafka-run-class.sh", *line) == (0, "", "")


def test_a_missing_authorizer_is_reported() -> None:
    with EmbeddedBroker() as broker:
        done = acls(broker, "--list")
    assert done.code == 1
    assert done.out.startswith(
        "Error while executing ACL command: "
        "org.apache.kafka.common.errors.SecurityDisabledException: "
    )


def test_old_lines_without_zookeeper_get_the_current_error() -> None:
    done = call_tool("kafka-acls.sh", "--authorizer-properties", "a=b", "--list")
    assert done.err.startswith(
        "One of --bootstrap-server or --bootstrap-controller must be specified\n"
    )
