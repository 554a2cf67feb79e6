"""Every API that the broker serves, by key. ApiVersions lists exactly these.

The module of a rarely used API is imported at its first request: together they took a twelfth of a
broker's start-up time, and a megabyte. The APIs that clients use all the time are `EAGER`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from penstock.broker import handlers
from penstock.broker.context import AnyHandler
from penstock.broker.handling.forwarding import at_controller
from penstock.broker.handling.lazy_handlers import LazyHandlers
from penstock.broker.handling.mutation_quota import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    limited,
)

_FOUND_BY: Final[Mapping[int, Callable[[], AnyHandler]]] = {
    0: lambda: handlers.produce.produce,
    1: lambda: handlers.fetch.fetch,
    2: lambda: handlers.list_offsets.list_offsets,
    3: lambda: handlers.metadata.metadata,
    4: lambda: handlers.leader_and_isr.leader_and_isr,
    5: lambda: handlers.stop_replica.stop_replica,
    6: lambda: handlers.update_metadata.update_metadata,
    7: lambda: handlers.controlled_shutdown.controlled_shutdown,
    8: lambda: handlers.offset_commit.offset_commit,
    9: lambda: handlers.offset_fetch.offset_fetch,
    10: lambda: handlers.find_coordinator.find_coordinator,
    11: lambda: handlers.join_group.join_group,
    12: lambda: handlers.heartbeat.heartbeat,
    13: lambda: handlers.leave_group.leave_group,
    14: lambda: handlers.sync_group.sync_group,
    15: lambda: handlers.describe_groups.describe_groups,
    16: lambda: handlers.list_groups.list_groups,
    17: lambda: handlers.sasl_handshake.sasl_handshake,
    18: lambda: handlers.api_versions.api_versions,
    19: lambda: limited(CREATE_TOPICS, at_controller(handlers.create_topics.create_topics)),
    20: lambda: limited(DELETE_TOPICS, at_controller(handlers.delete_topics.delete_topics)),
    21: lambda: handlers.delete_records.delete_records,
    22: lambda: handlers.init_producer_id.init_producer_id,
    23: lambda: handlers.offset_for_leader_epoch.offset_for_leader_epoch,
    24: lambda: handlers.add_partitions_to_txn.add_partitions_to_txn,
    25: lambda: handlers.add_offsets_to_txn.add_offsets_to_txn,
    26: lambda: handlers.end_txn.end_txn,
    27: lambda: handlers.write_txn_markers.write_txn_markers,
    28: lambda: handlers.txn_offset_commit.txn_offset_commit,
    29: lambda: handlers.describe_acls.describe_acls,
    30: lambda: handlers.create_acls.create_acls,
    31: lambda: handlers.delete_acls.delete_acls,
    32: lambda: handlers.describe_configs.describe_configs,
    33: lambda: handlers.alter_configs.alter_configs,
    34: lambda: handlers.alter_replica_log_dirs.alter_replica_log_dirs,
    35: lambda: handlers.describe_log_dirs.describe_log_dirs,
    36: lambda: handlers.sasl_authenticate.sasl_authenticate,
    37: lambda: limited(
        CREATE_PARTITIONS, at_controller(handlers.create_partitions.create_partitions)
    ),
    38: lambda: handlers.create_delegation_token.create_delegation_token,
    39: lambda: handlers.renew_delegation_token.renew_delegation_token,
    40: lambda: handlers.expire_delegation_token.expire_delegation_token,
    41: lambda: handlers.describe_delegation_token.describe_delegation_token,
    42: lambda: handlers.delete_groups.delete_groups,
    43: lambda: at_controller(handlers.elect_leaders.elect_leaders),
    44: lambda: handlers.incremental_alter_configs.incremental_alter_configs,
    45: lambda: at_controller(handlers.alter_partition_reassignments.alter_partition_reassignments),
    46: lambda: at_controller(handlers.list_partition_reassignments.list_partition_reassignments),
    47: lambda: handlers.offset_delete.offset_delete,
    48: lambda: handlers.describe_client_quotas.describe_client_quotas,
    49: lambda: at_controller(handlers.alter_client_quotas.alter_client_quotas),
    50: lambda: handlers.describe_user_scram_credentials.describe_user_scram_credentials,
    51: lambda: at_controller(handlers.alter_user_scram_credentials.alter_user_scram_credentials),
    56: lambda: handlers.alter_partition.alter_partition,
    57: lambda: at_controller(handlers.update_features.update_features),
    60: lambda: handlers.describe_cluster.describe_cluster,
    61: lambda: handlers.describe_producers.describe_producers,
    65: lambda: handlers.describe_transactions.describe_transactions,
    66: lambda: handlers.list_transactions.list_transactions,
    67: lambda: handlers.allocate_producer_ids.allocate_producer_ids,
    68: lambda: handlers.consumer_group_heartbeat.consumer_group_heartbeat,
    69: lambda: handlers.consumer_group_describe.consumer_group_describe,
    71: lambda: handlers.get_telemetry_subscriptions.get_telemetry_subscriptions,
    72: lambda: handlers.push_telemetry.push_telemetry,
    74: lambda: handlers.list_config_resources.list_config_resources,
    75: lambda: handlers.describe_topic_partitions.describe_topic_partitions,
    76: lambda: handlers.share_group_heartbeat.share_group_heartbeat,
    77: lambda: handlers.share_group_describe.share_group_describe,
    78: lambda: handlers.share_fetch.share_fetch,
    79: lambda: handlers.share_acknowledge.share_acknowledge,
    83: lambda: handlers.initialize_share_group_state.initialize_share_group_state,
    84: lambda: handlers.read_share_group_state.read_share_group_state,
    85: lambda: handlers.write_share_group_state.write_share_group_state,
    86: lambda: handlers.delete_share_group_state.delete_share_group_state,
    87: lambda: handlers.read_share_group_state_summary.read_share_group_state_summary,
    88: lambda: handlers.streams_group_heartbeat.streams_group_heartbeat,
    89: lambda: handlers.streams_group_describe.streams_group_describe,
    90: lambda: handlers.describe_share_group_offsets.describe_share_group_offsets,
    91: lambda: handlers.alter_share_group_offsets.alter_share_group_offsets,
    92: lambda: handlers.delete_share_group_offsets.delete_share_group_offsets,
    93: lambda: (
        handlers.streams_group_topology_description_update.streams_group_topology_description_update
    ),
}

EAGER: Final = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 22, 68)
"""Imported at start-up: no producer or consumer waits for an import."""

HANDLERS: Final = LazyHandlers(_FOUND_BY, EAGER)
