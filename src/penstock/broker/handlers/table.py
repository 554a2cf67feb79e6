"""Every API that the broker serves, by key. ApiVersions lists exactly these."""

from collections.abc import Mapping

from penstock.broker.context import AnyHandler
from penstock.broker.forwarding import at_controller
from penstock.broker.handlers.add_offsets_to_txn import add_offsets_to_txn
from penstock.broker.handlers.add_partitions_to_txn import add_partitions_to_txn
from penstock.broker.handlers.allocate_producer_ids import allocate_producer_ids
from penstock.broker.handlers.alter_client_quotas import alter_client_quotas
from penstock.broker.handlers.alter_configs import alter_configs
from penstock.broker.handlers.alter_partition import alter_partition
from penstock.broker.handlers.alter_partition_reassignments import alter_partition_reassignments
from penstock.broker.handlers.alter_replica_log_dirs import alter_replica_log_dirs
from penstock.broker.handlers.alter_user_scram_credentials import alter_user_scram_credentials
from penstock.broker.handlers.api_versions import api_versions
from penstock.broker.handlers.consumer_group_describe import consumer_group_describe
from penstock.broker.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from penstock.broker.handlers.controlled_shutdown import controlled_shutdown
from penstock.broker.handlers.create_acls import create_acls
from penstock.broker.handlers.create_delegation_token import create_delegation_token
from penstock.broker.handlers.create_partitions import create_partitions
from penstock.broker.handlers.create_topics import create_topics
from penstock.broker.handlers.delete_acls import delete_acls
from penstock.broker.handlers.delete_groups import delete_groups
from penstock.broker.handlers.delete_records import delete_records
from penstock.broker.handlers.delete_topics import delete_topics
from penstock.broker.handlers.describe_acls import describe_acls
from penstock.broker.handlers.describe_client_quotas import describe_client_quotas
from penstock.broker.handlers.describe_cluster import describe_cluster
from penstock.broker.handlers.describe_configs import describe_configs
from penstock.broker.handlers.describe_delegation_token import describe_delegation_token
from penstock.broker.handlers.describe_groups import describe_groups
from penstock.broker.handlers.describe_log_dirs import describe_log_dirs
from penstock.broker.handlers.describe_producers import describe_producers
from penstock.broker.handlers.describe_topic_partitions import describe_topic_partitions
from penstock.broker.handlers.describe_transactions import describe_transactions
from penstock.broker.handlers.describe_user_scram_credentials import (
    describe_user_scram_credentials,
)
from penstock.broker.handlers.elect_leaders import elect_leaders
from penstock.broker.handlers.end_txn import end_txn
from penstock.broker.handlers.expire_delegation_token import expire_delegation_token
from penstock.broker.handlers.fetch import fetch
from penstock.broker.handlers.find_coordinator import find_coordinator
from penstock.broker.handlers.heartbeat import heartbeat
from penstock.broker.handlers.incremental_alter_configs import incremental_alter_configs
from penstock.broker.handlers.init_producer_id import init_producer_id
from penstock.broker.handlers.join_group import join_group
from penstock.broker.handlers.leader_and_isr import leader_and_isr
from penstock.broker.handlers.leave_group import leave_group
from penstock.broker.handlers.list_config_resources import list_config_resources
from penstock.broker.handlers.list_groups import list_groups
from penstock.broker.handlers.list_offsets import list_offsets
from penstock.broker.handlers.list_partition_reassignments import list_partition_reassignments
from penstock.broker.handlers.list_transactions import list_transactions
from penstock.broker.handlers.metadata import metadata
from penstock.broker.handlers.offset_commit import offset_commit
from penstock.broker.handlers.offset_delete import offset_delete
from penstock.broker.handlers.offset_fetch import offset_fetch
from penstock.broker.handlers.offset_for_leader_epoch import offset_for_leader_epoch
from penstock.broker.handlers.produce import produce
from penstock.broker.handlers.renew_delegation_token import renew_delegation_token
from penstock.broker.handlers.sasl_authenticate import sasl_authenticate
from penstock.broker.handlers.sasl_handshake import sasl_handshake
from penstock.broker.handlers.stop_replica import stop_replica
from penstock.broker.handlers.sync_group import sync_group
from penstock.broker.handlers.txn_offset_commit import txn_offset_commit
from penstock.broker.handlers.update_features import update_features
from penstock.broker.handlers.update_metadata import update_metadata
from penstock.broker.handlers.write_txn_markers import write_txn_markers
from penstock.broker.mutation_quota import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    limited,
)

HANDLERS: Mapping[int, AnyHandler] = {
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    4: leader_and_isr,
    5: stop_replica,
    6: update_metadata,
    7: controlled_shutdown,
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    11: join_group,
    12: heartbeat,
    13: leave_group,
    14: sync_group,
    15: describe_groups,
    16: list_groups,
    17: sasl_handshake,
    18: api_versions,
    19: limited(CREATE_TOPICS, at_controller(create_topics)),
    20: limited(DELETE_TOPICS, at_controller(delete_topics)),
    21: delete_records,
    22: init_producer_id,
    23: offset_for_leader_epoch,
    24: add_partitions_to_txn,
    25: add_offsets_to_txn,
    26: end_txn,
    27: write_txn_markers,
    28: txn_offset_commit,
    29: describe_acls,
    30: create_acls,
    31: delete_acls,
    32: describe_configs,
    33: at_controller(alter_configs),
    34: alter_replica_log_dirs,
    35: describe_log_dirs,
    36: sasl_authenticate,
    37: limited(CREATE_PARTITIONS, at_controller(create_partitions)),
    38: create_delegation_token,
    39: renew_delegation_token,
    40: expire_delegation_token,
    41: describe_delegation_token,
    42: delete_groups,
    43: at_controller(elect_leaders),
    44: incremental_alter_configs,
    45: at_controller(alter_partition_reassignments),
    46: at_controller(list_partition_reassignments),
    47: offset_delete,
    48: describe_client_quotas,
    49: at_controller(alter_client_quotas),
    50: describe_user_scram_credentials,
    51: at_controller(alter_user_scram_credentials),
    56: alter_partition,
    57: at_controller(update_features),
    60: describe_cluster,
    61: describe_producers,
    65: describe_transactions,
    66: list_transactions,
    67: allocate_producer_ids,
    68: consumer_group_heartbeat,
    69: consumer_group_describe,
    74: list_config_resources,
    75: describe_topic_partitions,
}
