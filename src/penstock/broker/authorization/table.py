"""The permissions of every API: the one table by which requests are checked.

A guard passes only allowed items to its handler, and joins the response with refusals of the rest.
Items that the request names are refused by name; items that a response would list unrequested are
left out.
"""

from collections.abc import Mapping
from typing import Final

from penstock.broker.authorization import (
    group_offsets,
    groups,
    produce,
    settings,
    share_groups,
    share_states,
    streams_groups,
    topics,
    transactions,
)
from penstock.broker.authorization.guard import Guard
from penstock.broker.authorization.whole import (
    cluster,
    cluster_each,
    creations_refused,
    deletions_refused,
    described_quotas_refused,
    described_users_refused,
    elect_leaders,
    left_to_handler,
    markers_refused,
    moves_refused,
    quotas_refused,
    reassignments_refused,
    users_refused,
)
from penstock.security.acl import AclOperation

Op = AclOperation

GUARDS: Final[Mapping[int, Guard]] = {
    0: produce.produce,
    1: left_to_handler,  # checks each partition of its session: see `handlers/fetch.py`
    2: topics.list_offsets,
    3: topics.metadata,
    4: cluster(Op.CLUSTER_ACTION),
    5: cluster(Op.CLUSTER_ACTION),
    6: cluster(Op.CLUSTER_ACTION),
    7: cluster(Op.CLUSTER_ACTION),
    8: groups.offset_commit,
    9: group_offsets.offset_fetch,
    10: groups.find_coordinator,
    11: groups.one_group,
    12: groups.one_group,
    13: groups.one_group,
    14: groups.one_group,
    15: groups.describe_groups,
    16: groups.list_groups,
    17: left_to_handler,
    18: left_to_handler,
    19: topics.create_topics,
    20: topics.delete_topics,
    21: topics.delete_records,
    22: transactions.init_producer_id,
    23: topics.offset_for_leader_epoch,
    24: transactions.add_partitions,
    25: transactions.add_offsets,
    26: transactions.transaction,
    27: cluster_each(markers_refused, Op.CLUSTER_ACTION, Op.ALTER),
    28: groups.txn_offset_commit,
    29: cluster(Op.DESCRIBE),
    30: cluster_each(creations_refused, Op.ALTER),
    31: cluster_each(deletions_refused, Op.ALTER),
    32: settings.describe_configs,
    33: settings.alter_configs,
    34: cluster_each(moves_refused, Op.ALTER),
    35: cluster(Op.DESCRIBE),
    36: left_to_handler,
    37: topics.create_partitions,
    38: left_to_handler,  # these four: the handlers check, as a token's owner needs no permission
    39: left_to_handler,
    40: left_to_handler,
    41: left_to_handler,
    42: groups.delete_groups,
    43: elect_leaders,
    44: settings.incremental_alter_configs,
    45: cluster_each(reassignments_refused, Op.ALTER),
    46: cluster(Op.DESCRIBE),
    47: groups.offset_delete,
    48: cluster_each(described_quotas_refused, Op.DESCRIBE_CONFIGS),
    49: cluster_each(quotas_refused, Op.ALTER_CONFIGS),
    50: cluster_each(described_users_refused, Op.DESCRIBE),
    51: cluster_each(users_refused, Op.ALTER),
    56: cluster(Op.CLUSTER_ACTION),
    57: cluster(Op.ALTER),
    60: left_to_handler,  # includes the cluster's allowed operations only on request
    61: topics.describe_producers,
    65: transactions.describe_transactions,
    66: transactions.list_transactions,
    67: cluster(Op.CLUSTER_ACTION),
    68: groups.heartbeat,
    69: groups.describe_consumer_groups,
    71: left_to_handler,
    72: left_to_handler,
    74: cluster(Op.DESCRIBE_CONFIGS),
    75: topics.describe_topic_partitions,
    76: groups.heartbeat,
    77: share_groups.describe,
    78: groups.one_group,  # and the topics of the session: see `translate/share_requests.py`
    79: groups.one_group,
    83: cluster_each(share_states.initializing_refused, Op.CLUSTER_ACTION),
    84: cluster_each(share_states.reading_refused, Op.CLUSTER_ACTION),
    85: cluster_each(share_states.writing_refused, Op.CLUSTER_ACTION),
    86: cluster_each(share_states.deleting_refused, Op.CLUSTER_ACTION),
    87: cluster_each(share_states.summary_refused, Op.CLUSTER_ACTION),
    88: streams_groups.heartbeat,
    89: streams_groups.describe,
    90: group_offsets.describe_share_offsets,
    91: share_groups.alter_offsets,
    92: share_groups.delete_offsets,
    93: groups.one_group,
}
"""Guards by API key. With an authorizer, every handler must have one."""
