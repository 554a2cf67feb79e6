"""Guards split a request into allowed and refused names in one pass, however many there are."""

import asyncio
import logging
from typing import Any, cast

import pytest

from penstock.broker.acls.access import MOST_REFUSALS, Access
from penstock.broker.authorization.guard import Guard, NotAuthorized
from penstock.broker.authorization.table import GUARDS
from penstock.broker.context import Context
from penstock.broker.handling.turns import Pieces, in_pieces
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ErrorCode
from penstock.metadata.image import ClusterImage
from penstock.security.acl import (
    CLUSTER_NAME,
    AccessRule,
    Acl,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from penstock.security.acls import Acls
from penstock.security.principal import Principal, user
from penstock.types import Uuid
from penstock.wire.apis import APIS
from penstock.wire.codec import encode
from penstock.wire.messages import alter_configs as altering
from penstock.wire.messages import create_topics as creating
from penstock.wire.messages import incremental_alter_configs as incremental
from penstock.wire.messages import share_group_describe as share_groups
from penstock.wire.messages import streams_group_describe as streams_groups
from penstock.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from penstock.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData

NAMES = 1000
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Name(str):
    """Counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Client:
    principal: Principal = user("mallory")
    host = "127.0.0.1"


class Services:
    class cluster:  # noqa: N801 - stands in for the attribute
        image = ClusterImage()


class Asked:
    version = 4
    services = Services


def access(*more: Acl) -> Access:
    """Access to names that begin with `mine`, and what more ACLs grant."""
    rule = AccessRule("User:mallory", "*", AclOperation.ALL, Permission.ALLOW)
    kinds = (ResourceType.GROUP, ResourceType.TOPIC)
    mine = [Acl(ResourcePattern(kind, "mine", PatternType.PREFIXED), rule) for kind in kinds]
    return Access(Acls([*mine, *more]), Client(), "a request", set())


def guarded(guard: Guard, request: Any, response: Any, *more: Acl) -> tuple[Any, Any]:
    """The requests that reached the handler, and the answer."""
    asked = []

    def handler(passed: Any, _ctx: Any) -> Any:
        asked.append(passed)
        return response

    answer = guard(request, cast("Context", Asked), cast("Any", handler), access(*more))
    return asked, answer


def names() -> list[str]:
    return [Name(f"{'mine' if at % 2 else 'theirs'}-{at}") for at in range(NAMES)]


def test_the_refusals_of_one_request_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.authorizer")
    asks = access()
    for number in range(MOST_REFUSALS + 10):
        assert not asks.group(AclOperation.READ, f"group-{number}")
    *reported, last = [each.getMessage() for each in caplog.records]
    assert len(reported) == MOST_REFUSALS
    assert reported[-1].startswith("Principal = User:mallory is Denied operation = READ")
    assert last.endswith("the others are not logged")
    caplog.clear()
    assert not access().group(AclOperation.READ, "x" * 30_000)
    assert len(caplog.messages[0]) < 2_000


def test_refusals_of_a_divided_request_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def described(request: DescribeGroupsRequest, _: Context) -> DescribeGroupsResponse:
        asks = access()
        assert not any(asks.group(AclOperation.DESCRIBE, each) for each in request.groups)
        return DescribeGroupsResponse()

    caplog.set_level(logging.INFO, "penstock.authorizer")
    handle = in_pieces(described, Pieces("groups", "groups", size=7))
    many = DescribeGroupsRequest([f"group-{number}" for number in range(2 * MOST_REFUSALS)])
    asyncio.run(cast("Any", handle(many, cast("Context", Asked))))
    assert len(caplog.records) == MOST_REFUSALS + 1
    caplog.clear()
    described(DescribeGroupsRequest(["another request"]), cast("Context", Asked))
    assert len(caplog.records) == 1


OF_BROKERS = [key for key, api in APIS.items() if api.inter_broker and key in GUARDS]


@pytest.mark.parametrize("key", OF_BROKERS)
def test_requests_of_brokers_need_cluster_action(key: int) -> None:
    whole = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
    for operation in AclOperation:
        if operation in (AclOperation.UNKNOWN, AclOperation.ANY):
            continue
        rule = AccessRule("User:mallory", "*", operation, Permission.ALLOW)
        is_allowed = operation in (AclOperation.ALL, AclOperation.CLUSTER_ACTION)
        request = APIS[key].request()
        if is_allowed:
            asked, answer = guarded(GUARDS[key], request, "done", Acl(whole, rule))
            assert (asked, answer) == ([request], "done")
        elif key in range(83, 88):  # these APIs return the error per partition
            asked, answer = guarded(GUARDS[key], request, "done", Acl(whole, rule))
            assert (asked, answer) == ([], APIS[key].response())
        else:
            with pytest.raises(NotAuthorized):
                guarded(GUARDS[key], request, "done", Acl(whole, rule))


def test_the_requests_of_brokers_are_known() -> None:
    assert OF_BROKERS == [4, 5, 6, 7, 56, 67, 83, 84, 85, 86, 87]


@pytest.mark.parametrize(
    ("key", "request_of", "listed", "response", "answers"),
    [
        (
            10,
            lambda names: FindCoordinatorRequest(coordinator_keys=names),
            "coordinator_keys",
            FindCoordinatorResponse(),
            "coordinators",
        ),
        (
            20,
            lambda names: DeleteTopicsRequest(topic_names=names),
            "topic_names",
            DeleteTopicsResponse(),
            "responses",
        ),
    ],
)
def test_the_guard_does_not_search_lists_for_each_name(
    key: int, request_of: Any, listed: str, response: Any, answers: str
) -> None:
    wanted = names()
    Name.compared = 0
    asked, answer = guarded(GUARDS[key], request_of(wanted), response)
    assert Name.compared < 10 * NAMES
    assert [str(each) for each in getattr(asked[0], listed)] == [str(e) for e in wanted[1::2]]
    denied = {each.error_code for each in getattr(answer, answers)}
    assert len(getattr(answer, answers)) == NAMES // 2
    assert denied <= {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


TOLD = Uuid(bytes(15) + b"\1")


def test_deleting_an_unknown_topic_needs_the_permission_too() -> None:
    """The handler waits for the controller, which may have created the topic by then."""
    rule = AccessRule("User:mallory", "*", AclOperation.DESCRIBE, Permission.ALLOW)
    seen = Acl(ResourcePattern(ResourceType.TOPIC, "pay", PatternType.PREFIXED), rule)
    topics = [
        DeleteTopicState(name="pay"),
        DeleteTopicState(name=None, topic_id=TOLD),
        DeleteTopicState(name="mine"),
        DeleteTopicState(name="hidden"),
    ]
    asked, answer = guarded(
        GUARDS[20], DeleteTopicsRequest(topics=topics), DeleteTopicsResponse(), seen
    )
    assert [each.name for each in asked[0].topics] == ["mine"]
    assert [each.error_code for each in answer.responses] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]


def test_producing_to_an_unknown_topic_id_is_refused() -> None:
    """The handler may wait for a transaction's coordinator and know the topic by then."""
    topics = [TopicProduceData(topic_id=TOLD), TopicProduceData(name="mine")]
    asked, answer = guarded(GUARDS[0], ProduceRequest(acks=1, topic_data=topics), ProduceResponse())
    assert [each.name for each in asked[0].topic_data] == ["mine"]
    assert [each.topic_id for each in answer.responses] == [TOLD]


def test_a_share_group_with_an_assigned_topic_that_may_not_be_described_is_hidden() -> None:
    """Members keep partitions for a while of topics that they no longer subscribe to."""
    had = share_groups.Assignment([share_groups.TopicPartitions(TOLD, "hidden", [0])])
    member = share_groups.Member(subscribed_topic_names=["mine"], assignment=had)
    group = share_groups.DescribedGroup(group_id="mine", members=[member])
    _, answer = guarded(
        GUARDS[77],
        share_groups.ShareGroupDescribeRequest(group_ids=["mine"]),
        share_groups.ShareGroupDescribeResponse(groups=[group]),
    )
    assert [each.error_code for each in answer.groups] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert "hidden" not in repr(answer)


@pytest.mark.parametrize("kind", ["source", "sink", "global source", "global processor"])
def test_a_streams_group_whose_description_names_a_hidden_topic_is_hidden(kind: str) -> None:
    mine = streams_groups.TopologyDescriptionNode(source_topics=["mine"])
    hidden = streams_groups.TopologyDescriptionNode(source_topics=["hidden"])
    if kind == "sink":
        hidden = streams_groups.TopologyDescriptionNode(sink_topic="hidden")
    described = streams_groups.TopologyDescription(
        [streams_groups.TopologyDescriptionSubtopology("0", [mine, hidden])]
    )
    if "global" in kind:
        pair = (hidden, mine) if kind == "global source" else (mine, hidden)
        store = streams_groups.TopologyDescriptionGlobalStore(*pair)
        described = streams_groups.TopologyDescription([], [store])
    group = streams_groups.DescribedGroup(group_id="mine", topology_description=described)
    _, answer = guarded(
        GUARDS[89],
        streams_groups.StreamsGroupDescribeRequest(group_ids=["mine"]),
        streams_groups.StreamsGroupDescribeResponse(groups=[group]),
    )
    assert [each.error_code for each in answer.groups] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert "hidden" not in repr(answer)


def reroute(topic: str, setting: str, target: str) -> incremental.AlterConfigsResource:
    config = incremental.AlterableConfig(name=setting, config_operation=0, value=target)
    return incremental.AlterConfigsResource(ConfigResourceType.TOPIC, topic, [config])


@pytest.mark.parametrize(
    "setting", ["penstock.delay.to", "penstock.retry.to", "penstock.dlq.topic"]
)
def test_a_route_needs_write_permission_on_its_target(setting: str) -> None:
    """The delay service would otherwise write there on behalf of any user."""
    resources = [reroute("mine", setting, "mine-too"), reroute("mine", setting, "payments")]
    asked, answer = guarded(
        GUARDS[44],
        incremental.IncrementalAlterConfigsRequest(resources),
        incremental.IncrementalAlterConfigsResponse(),
    )
    assert asked[0].resources == resources[:1]
    assert [each.error_code for each in answer.responses] == [TOPIC_REFUSED]

    topics = [
        creating.CreatableTopic(name=name, configs=[creating.CreatableTopicConfig(setting, target)])
        for name, target in (("mine-1", "mine"), ("mine-2", "payments"))
    ]
    create = AccessRule("User:mallory", "*", AclOperation.CREATE, Permission.ALLOW)
    on_cluster = Acl(ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME), create)
    asked, answer = guarded(
        GUARDS[19],
        creating.CreateTopicsRequest(topics=topics),
        creating.CreateTopicsResponse(),
        on_cluster,
    )
    assert asked[0].topics == topics[:1]
    assert [each.error_code for each in answer.topics] == [TOPIC_REFUSED]


def test_a_route_needs_read_permission_on_its_source() -> None:
    rule = AccessRule("User:mallory", "*", AclOperation.ALTER_CONFIGS, Permission.ALLOW)
    altered = Acl(ResourcePattern(ResourceType.TOPIC, "payments"), rule)
    resources = [
        reroute("payments", "retention.ms", "1"),
        reroute("payments", "penstock.delay.to", "mine"),
    ]
    asked, _ = guarded(
        GUARDS[44],
        incremental.IncrementalAlterConfigsRequest(resources),
        incremental.IncrementalAlterConfigsResponse(),
        altered,
    )
    assert asked[0].resources == resources[:1]


def allowed_on(topic: str, *operations: AclOperation) -> list[Acl]:
    rules = (AccessRule("User:mallory", "*", each, Permission.ALLOW) for each in operations)
    return [Acl(ResourcePattern(ResourceType.TOPIC, topic), rule) for rule in rules]


def test_a_route_needs_write_permission_on_its_default_dead_letter_topic() -> None:
    """The service would otherwise write into `payments.dlq` for a user who may use `payments`."""
    op = AclOperation
    payments = allowed_on("payments", op.CREATE, op.READ, op.ALTER_CONFIGS)
    letters = allowed_on("payments.dlq", op.WRITE)
    to, dlq = "penstock.delay.to", "penstock.dlq.topic"

    def may(key: int, settings: dict[str, str | None], before: dict[str, str], *more: Acl) -> bool:
        image = ClusterImage(topic_configs={"payments": before})
        Services.cluster.image, replaced = image, Services.cluster.image
        resource: Any = incremental.AlterConfigsResource(
            ConfigResourceType.TOPIC,
            "payments",
            [
                incremental.AlterableConfig(name, 0 if value else 1, value)
                for name, value in settings.items()
            ],
        )
        request: Any = incremental.IncrementalAlterConfigsRequest([resource])
        response: Any = incremental.IncrementalAlterConfigsResponse()
        if key == 33:
            configs: Any = [altering.AlterableConfig(*each) for each in settings.items()]
            resource = altering.AlterConfigsResource(ConfigResourceType.TOPIC, "payments", configs)
            request = altering.AlterConfigsRequest([resource])
            response = altering.AlterConfigsResponse()
        elif key == 19:
            configs = [creating.CreatableTopicConfig(*each) for each in settings.items()]
            topic = creating.CreatableTopic(name="payments", configs=configs)
            request = creating.CreateTopicsRequest(topics=[topic])
            response = creating.CreateTopicsResponse()
        try:
            asked, _ = guarded(GUARDS[key], request, response, *payments, *more)
        finally:
            Services.cluster.image = replaced
        return bool(asked)

    for key in (19, 33, 44):
        assert not may(key, {to: "mine"}, {})
        assert may(key, {to: "mine"}, {}, *letters)
        assert may(key, {to: "mine", dlq: "mine-too"}, {})
    route = {to: "mine", dlq: "mine-too"}
    assert may(44, {to: "mine"}, route), "the dead letters stay where they are"
    assert not may(33, {to: "mine"}, route), "the setting that is not repeated ends"
    assert not may(44, {dlq: None}, route)
    assert may(44, {dlq: None}, route, *letters)
    assert may(44, {dlq: None, to: None}, route)
    assert may(44, {to: "mine-two"}, {to: "mine"}), "the topic had these dead letters before"
    assert may(44, {dlq: None}, {}), "it has no route"


CLUSTER_ONLY = (27, 29, 30, 31, 34, 35, 43, 45, 46, 48, 49, 50, 51, 57, 74, 83, 84, 85, 86, 87)
"""APIs that need a permission on the cluster."""


@pytest.mark.parametrize("key", CLUSTER_ONLY)
def test_a_refusal_fits_its_version(key: int) -> None:
    """An error in a field that the version lacks would be a traceback for each request."""
    api = APIS[key]
    for version in range(api.low, api.high + 1):

        class OfVersion(Asked):
            pass

        OfVersion.version = version
        try:
            answer = GUARDS[key](
                api.request(), cast("Context", OfVersion), cast("Any", None), access()
            )
        except NotAuthorized:
            continue  # the dispatcher makes the response
        encode(answer, version)
