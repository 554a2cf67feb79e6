"""Paths in the tree, as in Kafka 3.9 in ZooKeeper mode."""

from urllib.parse import quote, unquote

from penstock.types import BrokerId, TopicPartition

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
FEATURE = "/feature"
LATEST_PRODUCER_ID_BLOCK = "/latest_producer_id_block"

BROKER_IDS = "/brokers/ids"
BROKER_SEQID = "/brokers/seqid"
TOPICS = "/brokers/topics"

CONFIG_TOPICS = "/config/topics"
CONFIG_BROKERS = "/config/brokers"
CONFIG_CLIENTS = "/config/clients"
CONFIG_USERS = "/config/users"
SCRAM_SALT_SECRET = "/penstock/scram_salt_secret"  # noqa: S105 - a path
CONFIG_IPS = "/config/ips"
CONFIG_GROUPS = "/config/groups"
"""Not in Kafka 3.9: created when the first group gets settings."""
CONFIG_CLIENT_METRICS = "/config/client-metrics"
"""Also created by its first entry."""
CONFIG_CHANGES = "/config/changes"

DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"

ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"

CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
ISR_CHANGE_PREFIX = f"{ISR_CHANGE_NOTIFICATION}/isr_change_"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
"""Sequential nodes: the store appends ten digits."""

DEFAULT_ENTITY = "<default>"
"""The default of all entities without their own settings."""

PERSISTENT = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQID,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    CONFIG_TOPICS,
    CONFIG_CLIENTS,
    CONFIG_USERS,
    CONFIG_BROKERS,
    CONFIG_IPS,
)
"""Created in an empty tree by the first broker, in this order, with their parents."""


def broker(broker_id: BrokerId) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions(topic_name: str) -> str:
    return f"{TOPICS}/{topic_name}/partitions"


def partition(topic_partition: TopicPartition) -> str:
    return f"{TOPICS}/{topic_partition.topic}/partitions/{topic_partition.partition}"


def partition_state(topic_partition: TopicPartition) -> str:
    return f"{TOPICS}/{topic_partition.topic}/partitions/{topic_partition.partition}/state"


def deleted_topic(name: str) -> str:
    return f"{DELETE_TOPICS}/{name}"


def topic_config(name: str) -> str:
    return f"{CONFIG_TOPICS}/{name}"


def broker_config(broker_id: BrokerId | None) -> str:
    """None: the default of all brokers."""
    return f"{CONFIG_BROKERS}/{DEFAULT_ENTITY if broker_id is None else broker_id}"


def client_config(client_id: str | None) -> str:
    return f"{CONFIG_CLIENTS}/{_entity(client_id)}"


def user_config(user: str | None) -> str:
    return f"{CONFIG_USERS}/{_entity(user)}"


def user_client_config(user: str | None, client_id: str | None) -> str:
    return f"{CONFIG_USERS}/{_entity(user)}/clients/{_entity(client_id)}"


def ip_config(address: str | None) -> str:
    return f"{CONFIG_IPS}/{DEFAULT_ENTITY if address is None else address}"


def group_config(group: str) -> str:
    return f"{CONFIG_GROUPS}/{_entity(group)}"


def client_metrics_config(subscription: str) -> str:
    return f"{CONFIG_CLIENT_METRICS}/{_entity(subscription)}"


def sequence_number(name: str) -> int:
    """The number of a sequential node, by its name or path."""
    return int(name[-10:])


def entity_of(segment: str) -> str | None:
    """The user or client in a path segment; None: the default."""
    return None if segment == DEFAULT_ENTITY else unquote(segment)


def with_parents(path: str) -> list[str]:
    """The path and its ancestors except the root, from the top."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts) + 1)]


def _entity(name: str | None) -> str:
    return DEFAULT_ENTITY if name is None else sanitized(name)


def sanitized(name: str) -> str:
    """The name escaped as by Java's URLEncoder, which escapes the tilde, unlike `quote`."""
    return quote(name, safe="").replace("~", "%7E")
