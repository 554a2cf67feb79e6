"""One module per API. Its docstring is the API's contract; rules live in the layers below."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the imports by which mypy checks the table
    from penstock.broker.handlers import (  # noqa: I001  one list, exported by name
        add_offsets_to_txn as add_offsets_to_txn,
        add_partitions_to_txn as add_partitions_to_txn,
        allocate_producer_ids as allocate_producer_ids,
        alter_client_quotas as alter_client_quotas,
        alter_configs as alter_configs,
        alter_partition as alter_partition,
        alter_partition_reassignments as alter_partition_reassignments,
        alter_replica_log_dirs as alter_replica_log_dirs,
        alter_share_group_offsets as alter_share_group_offsets,
        alter_user_scram_credentials as alter_user_scram_credentials,
        api_versions as api_versions,
        consumer_group_describe as consumer_group_describe,
        consumer_group_heartbeat as consumer_group_heartbeat,
        controlled_shutdown as controlled_shutdown,
        create_acls as create_acls,
        create_delegation_token as create_delegation_token,
        create_partitions as create_partitions,
        create_topics as create_topics,
        delete_acls as delete_acls,
        delete_groups as delete_groups,
        delete_records as delete_records,
        delete_share_group_offsets as delete_share_group_offsets,
        delete_share_group_state as delete_share_group_state,
        delete_topics as delete_topics,
        describe_acls as describe_acls,
        describe_client_quotas as describe_client_quotas,
        describe_cluster as describe_cluster,
        describe_configs as describe_configs,
        describe_delegation_token as describe_delegation_token,
        describe_groups as describe_groups,
        describe_log_dirs as describe_log_dirs,
        describe_producers as describe_producers,
        describe_share_group_offsets as describe_share_group_offsets,
        describe_topic_partitions as describe_topic_partitions,
        describe_transactions as describe_transactions,
        describe_user_scram_credentials as describe_user_scram_credentials,
        elect_leaders as elect_leaders,
        end_txn as end_txn,
        expire_delegation_token as expire_delegation_token,
        fetch as fetch,
        find_coordinator as find_coordinator,
        get_telemetry_subscriptions as get_telemetry_subscriptions,
        heartbeat as heartbeat,
        incremental_alter_configs as incremental_alter_configs,
        init_producer_id as init_producer_id,
        initialize_share_group_state as initialize_share_group_state,
        join_group as join_group,
        leader_and_isr as leader_and_isr,
        leave_group as leave_group,
        list_config_resources as list_config_resources,
        list_groups as list_groups,
        list_offsets as list_offsets,
        list_partition_reassignments as list_partition_reassignments,
        list_transactions as list_transactions,
        metadata as metadata,
        offset_commit as offset_commit,
        offset_delete as offset_delete,
        offset_fetch as offset_fetch,
        offset_for_leader_epoch as offset_for_leader_epoch,
        produce as produce,
        push_telemetry as push_telemetry,
        read_share_group_state as read_share_group_state,
        read_share_group_state_summary as read_share_group_state_summary,
        renew_delegation_token as renew_delegation_token,
        sasl_authenticate as sasl_authenticate,
        sasl_handshake as sasl_handshake,
        share_acknowledge as share_acknowledge,
        share_fetch as share_fetch,
        share_group_describe as share_group_describe,
        share_group_heartbeat as share_group_heartbeat,
        stop_replica as stop_replica,
        streams_group_describe as streams_group_describe,
        streams_group_heartbeat as streams_group_heartbeat,
        streams_group_topology_description_update as streams_group_topology_description_update,
        sync_group as sync_group,
        txn_offset_commit as txn_offset_commit,
        update_features as update_features,
        update_metadata as update_metadata,
        write_share_group_state as write_share_group_state,
        write_txn_markers as write_txn_markers,
    )
else:

    def __getattr__(name: str) -> ModuleType:
        """Import a handler's module at first use."""
        path = f"{__name__}.{name}"
        try:
            return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
            raise AttributeError(f"there is no module {path}") from None
