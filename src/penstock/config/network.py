"""Settings of connections, requests and their limits."""

from dataclasses import dataclass

from penstock.config.address import canonical
from penstock.config.setting import Form, Update, setting
from penstock.config.value import INT_MAX, ConfigType

_OVERRIDE = r"\s*([0-9.]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+):[0-9]+\s*"
OVERRIDES = Form(
    rf"{_OVERRIDE}(,{_OVERRIDE})*|", "a comma-separated list of address:count, without host names"
)

DEFAULT_RECEIVE_BUFFER_BYTES = 102_400


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConfig:
    """Connections, requests and their limits."""

    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        104_857_600,
        "Largest request accepted; a larger one closes the connection.",
        low=1,
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        102_400,
        "`SO_SNDBUF` of accepted connections; -1 leaves it to the system.",
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        DEFAULT_RECEIVE_BUFFER_BYTES,
        "`SO_RCVBUF` of accepted connections. -1 and the default leave it to the system, which "
        "gives more to a connection with large requests, up to 1 MB.",
    )
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size",
        50,
        "Connections that may wait to be accepted.",
        low=1,
    )
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms",
        10_000,
        "How long a follower waits for a connection to a leader to open, twice as long after each "
        "failure. Control requests wait three seconds.",
        kind=ConfigType.LONG,
    )
    socket_connection_setup_timeout_max_ms: int = setting(
        "socket.connection.setup.timeout.max.ms",
        30_000,
        "The longest that a follower waits for a connection to a leader to open.",
        kind=ConfigType.LONG,
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        600_000,
        "Close a connection that is silent this long; -1: never.",
        kind=ConfigType.LONG,
    )
    connection_failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms",
        100,
        "How long a connection stays open after its login has failed.",
        low=0,
    )
    max_connections: int = setting(
        "max.connections",
        INT_MAX,
        "Open connections, over all listeners; more wait to be accepted. The listener of brokers "
        "is exempt, if there is another. `listener.name.<name>.max.connections` is for one.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        INT_MAX,
        "Open connections from one address.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides: str = setting(
        "max.connections.per.ip.overrides",
        "",
        "Other limits for some addresses: address:count, separated by commas.",
        update=Update.CLUSTER_WIDE,
        form=OVERRIDES,
    )
    max_connection_creation_rate: int = setting(
        "max.connection.creation.rate",
        INT_MAX,
        "New connections per second, as a mean over the windows of quotas; more wait to be "
        "accepted. Also with the prefix of a listener.",
        low=0,
        update=Update.CLUSTER_WIDE,
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms",
        30_000,
        "How long a request to the controller may take, with retries while it changes.",
    )
    queued_max_requests: int = setting(
        "queued.max.requests",
        500,
        "Requests of clients that are at work at the same time, where one takes more than a turn "
        "of the event loop. Others wait, and their connections are not read from.",
        low=1,
    )
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes",
        -1,
        "Memory of requests of more than 64 KiB; beyond it no more are read. -1: a quarter of the "
        "machine's memory.",
        kind=ConfigType.LONG,
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        57_671_680,
        "Most bytes a fetch may return, whatever the client requests.",
        low=1_024,
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Incremental fetch sessions cached at a time.",
        low=0,
    )
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        2000,
        "Most partitions in one DescribeTopicPartitions response.",
        low=1,
    )
    num_network_threads: int = setting(
        "num.network.threads",
        3,
        "Accepted, without effect: one event loop serves all connections.",
        low=1,
        update=Update.CLUSTER_WIDE,
    )
    num_io_threads: int = setting(
        "num.io.threads",
        8,
        "Accepted, without effect: one event loop serves all requests.",
        low=1,
        update=Update.CLUSTER_WIDE,
    )
    background_threads: int = setting(
        "background.threads",
        10,
        "Accepted, without effect: background work runs in the event loop.",
        low=1,
        update=Update.CLUSTER_WIDE,
    )
    fetch_purgatory_purge_interval_requests: int = setting(
        "fetch.purgatory.purge.interval.requests",
        1000,
        "Accepted, without effect: completed waiters go at once.",
    )
    producer_purgatory_purge_interval_requests: int = setting(
        "producer.purgatory.purge.interval.requests",
        1000,
        "Accepted, without effect: completed waiters go at once.",
    )
    delete_records_purgatory_purge_interval_requests: int = setting(
        "delete.records.purgatory.purge.interval.requests",
        1,
        "Accepted, without effect: completed waiters go at once.",
    )

    @property
    def connections_by_ip(self) -> dict[str, int]:
        """The limits of `max.connections.per.ip.overrides`, by address."""
        pairs = (each.rpartition(":") for each in self.max_connections_per_ip_overrides.split(","))
        return {canonical(host.strip()): int(count) for host, colon, count in pairs if colon}
