"""One request of each API, about the same resources; and the error codes and names in responses."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any

import msgspec

from differential.batches import batch
from penstock.types import Uuid
from penstock.wire.messages import add_offsets_to_txn as aot
from penstock.wire.messages import add_partitions_to_txn as apt
from penstock.wire.messages import alter_client_quotas as acq
from penstock.wire.messages import alter_configs as ac
from penstock.wire.messages import alter_partition_reassignments as apr
from penstock.wire.messages import alter_replica_log_dirs as ard
from penstock.wire.messages import alter_share_group_offsets as aso
from penstock.wire.messages import alter_user_scram_credentials as aus
from penstock.wire.messages import consumer_group_describe as cgd
from penstock.wire.messages import consumer_group_heartbeat as cgh
from penstock.wire.messages import create_acls as ca
from penstock.wire.messages import create_partitions as cp
from penstock.wire.messages import create_topics as ct
from penstock.wire.messages import delete_acls as da
from penstock.wire.messages import delete_groups as dg
from penstock.wire.messages import delete_records as dr
from penstock.wire.messages import delete_share_group_offsets as xso
from penstock.wire.messages import delete_share_group_state as xss
from penstock.wire.messages import delete_topics as dt
from penstock.wire.messages import describe_acls as dsa
from penstock.wire.messages import describe_client_quotas as dcq
from penstock.wire.messages import describe_cluster as dsc
from penstock.wire.messages import describe_configs as dc
from penstock.wire.messages import describe_groups as dsg
from penstock.wire.messages import describe_log_dirs as dl
from penstock.wire.messages import describe_producers as dp
from penstock.wire.messages import describe_share_group_offsets as dso
from penstock.wire.messages import describe_topic_partitions as dtp
from penstock.wire.messages import describe_transactions as dst
from penstock.wire.messages import describe_user_scram_credentials as dus
from penstock.wire.messages import elect_leaders as el
from penstock.wire.messages import end_txn as et
from penstock.wire.messages import fetch as f
from penstock.wire.messages import find_coordinator as fc
from penstock.wire.messages import heartbeat as hb
from penstock.wire.messages import incremental_alter_configs as iac
from penstock.wire.messages import init_producer_id as ip
from penstock.wire.messages import initialize_share_group_state as iss
from penstock.wire.messages import join_group as jg
from penstock.wire.messages import leave_group as lv
from penstock.wire.messages import list_config_resources as lc
from penstock.wire.messages import list_groups as lg
from penstock.wire.messages import list_offsets as lo
from penstock.wire.messages import list_partition_reassignments as lpr
from penstock.wire.messages import list_transactions as lt
from penstock.wire.messages import metadata as m
from penstock.wire.messages import offset_commit as oc
from penstock.wire.messages import offset_delete as od
from penstock.wire.messages import offset_fetch as of
from penstock.wire.messages import offset_for_leader_epoch as oe
from penstock.wire.messages import produce as p
from penstock.wire.messages import read_share_group_state as rss
from penstock.wire.messages import read_share_group_state_summary as sss
from penstock.wire.messages import share_acknowledge as sa
from penstock.wire.messages import share_fetch as sf
from penstock.wire.messages import share_group_describe as sgd
from penstock.wire.messages import share_group_heartbeat as sgh
from penstock.wire.messages import streams_group_describe as std
from penstock.wire.messages import streams_group_heartbeat as sth
from penstock.wire.messages import sync_group as sg
from penstock.wire.messages import txn_offset_commit as to
from penstock.wire.messages import update_features as uf
from penstock.wire.messages import write_share_group_state as wss
from penstock.wire.messages import write_txn_markers as wm
from penstock.wire.schema import Message

SECRET = "secret"
"""The prefix of all topics, groups and transactions in the requests and in what tests create
before.
"""
TOPIC, GROUP, TRANSACTION = "secret-topic", "secret-group", "secret-transaction"
NO_TOPIC = Uuid(b"secret-topic-id.")
ANY = 1


def produced(*, transactional_id: str | None = None, transactional: bool = False) -> Message:
    data = batch(transactional=transactional, producer_id=7 if transactional else -1)
    if transactional:
        data = batch(transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    part = p.PartitionProduceData(index=0, records=data)
    return p.ProduceRequest(
        transactional_id=transactional_id,
        acks=1 if not transactional else -1,
        timeout_ms=5000,
        topic_data=[p.TopicProduceData(name=TOPIC, partition_data=[part])],
    )


def samples() -> Iterator[tuple[str, Message, int]]:
    """Yields a name, a request and its version."""
    yield "Produce", produced(), 9
    yield "Produce transactional", produced(transactional_id=TRANSACTION, transactional=True), 9
    yield "Produce that lies", produced(transactional=True), 9
    part = f.FetchPartition(partition=0, partition_max_bytes=1000)
    topics = [f.FetchTopic(topic=TOPIC, partitions=[part])]
    yield "Fetch", f.FetchRequest(topics=topics, session_epoch=-1), 11
    yield "Fetch as a broker", f.FetchRequest(replica_id=1, topics=topics), 11
    asked = lo.ListOffsetsTopic(TOPIC, [lo.ListOffsetsPartition(0, -1, -1)])
    yield "ListOffsets", lo.ListOffsetsRequest(replica_id=-1, topics=[asked]), 7
    yield "Metadata", m.MetadataRequest(topics=[m.MetadataRequestTopic(name=TOPIC)]), 9
    new = [m.MetadataRequestTopic(name="secret-new")]
    yield "Metadata that creates", m.MetadataRequest(topics=new), 9
    yield "Metadata of all", m.MetadataRequest(topics=None), 9
    named = m.MetadataRequest(
        topics=[m.MetadataRequestTopic(name=TOPIC)],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    yield "Metadata with operations", named, 9
    commit = oc.OffsetCommitRequestTopic(TOPIC, partitions=[oc.OffsetCommitRequestPartition(0, 0)])
    yield "OffsetCommit", oc.OffsetCommitRequest(group_id=GROUP, topics=[commit]), 7
    wanted = of.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    yield "OffsetFetch", of.OffsetFetchRequest(group_id=GROUP, topics=[wanted]), 7
    yield "OffsetFetch v1", of.OffsetFetchRequest(group_id=GROUP, topics=[wanted]), 1
    yield "OffsetFetch of all", of.OffsetFetchRequest(group_id=GROUP, topics=None), 7
    many = of.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    group = of.OffsetFetchRequestGroup(group_id=GROUP, topics=[many])
    yield "OffsetFetch of groups", of.OffsetFetchRequest(groups=[group]), 8
    yield "FindCoordinator", fc.FindCoordinatorRequest(key=GROUP), 3
    yield "FindCoordinator of many", fc.FindCoordinatorRequest(coordinator_keys=[GROUP]), 4
    of_transaction = fc.FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTION])
    yield "FindCoordinator of a transaction", of_transaction, 4
    join = jg.JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        protocol_type="consumer",
        protocols=[jg.JoinGroupRequestProtocol("range", b"")],
    )
    yield "JoinGroup", join, 5
    yield "SyncGroup", sg.SyncGroupRequest(group_id=GROUP, member_id="x"), 3
    yield "Heartbeat", hb.HeartbeatRequest(group_id=GROUP, member_id="x"), 3
    leave = lv.LeaveGroupRequest(group_id=GROUP, members=[lv.MemberIdentity("x")])
    yield "LeaveGroup", leave, 4
    yield "DescribeGroups", dsg.DescribeGroupsRequest(groups=[GROUP]), 5
    yield "ListGroups", lg.ListGroupsRequest(), 4
    topic = ct.CreatableTopic(name="secret-created", num_partitions=1, replication_factor=1)
    yield "CreateTopics", ct.CreateTopicsRequest(topics=[topic], validate_only=True), 6
    nothing = dt.DeleteTopicState(name="secret-gone")
    yield "DeleteTopics", dt.DeleteTopicsRequest(topics=[nothing], timeout_ms=5000), 6
    records = dr.DeleteRecordsTopic(TOPIC, [dr.DeleteRecordsPartition(0, 0)])
    yield "DeleteRecords", dr.DeleteRecordsRequest(topics=[records], timeout_ms=5000), 2
    yield "InitProducerId", ip.InitProducerIdRequest(transactional_id=None), 3
    named_producer = ip.InitProducerIdRequest(
        transactional_id=TRANSACTION, transaction_timeout_ms=6000
    )
    yield "InitProducerId of a transaction", named_producer, 3
    epoch = oe.OffsetForLeaderTopic(TOPIC, [oe.OffsetForLeaderPartition(0, -1, 0)])
    yield "OffsetForLeaderEpoch", oe.OffsetForLeaderEpochRequest(topics=[epoch]), 4
    add = apt.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=7,
        v3_and_below_topics=[apt.AddPartitionsToTxnTopic(TOPIC, [0])],
    )
    yield "AddPartitionsToTxn", add, 3
    offsets = aot.AddOffsetsToTxnRequest(
        transactional_id=TRANSACTION, producer_id=7, group_id=GROUP
    )
    yield "AddOffsetsToTxn", offsets, 3
    end = et.EndTxnRequest(transactional_id=TRANSACTION, producer_id=7)
    yield "EndTxn", end, 3
    marker = wm.WritableTxnMarker(
        producer_id=7, topics=[wm.WritableTxnMarkerTopic("secret-none", [0])]
    )
    yield "WriteTxnMarkers", wm.WriteTxnMarkersRequest(markers=[marker]), 1
    in_transaction = to.TxnOffsetCommitRequest(
        transactional_id=TRANSACTION,
        group_id=GROUP,
        producer_id=7,
        topics=[
            to.TxnOffsetCommitRequestTopic(
                TOPIC, partitions=[to.TxnOffsetCommitRequestPartition(0, 0)]
            )
        ],
    )
    yield "TxnOffsetCommit", in_transaction, 3
    every = dsa.DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    yield "DescribeAcls", every, 3
    none = da.DeleteAclsFilter(2, "secret-none", 3, None, None, ANY, ANY)
    yield "DeleteAcls", da.DeleteAclsRequest([none]), 3
    acl = ca.AclCreation(2, "secret-acl", 3, "User:nobody", "*", 3, 3)
    yield "CreateAcls", ca.CreateAclsRequest([acl]), 3
    kinds = ((2, TOPIC), (4, ""), (32, GROUP))
    described = [dc.DescribeConfigsResource(kind, name, ["none"]) for kind, name in kinds]
    yield "DescribeConfigs", dc.DescribeConfigsRequest(described), 4
    altered = [ac.AlterConfigsResource(kind, name) for kind, name in kinds[:1]]
    yield "AlterConfigs", ac.AlterConfigsRequest(altered, validate_only=True), 2
    changed = [
        iac.AlterConfigsResource(kind, name, [iac.AlterableConfig("retention.ms", 0, "100000")])
        for kind, name in kinds[:1]
    ]
    changed.append(iac.AlterConfigsResource(4, "", []))
    changed.append(iac.AlterConfigsResource(32, GROUP, []))
    alter = iac.IncrementalAlterConfigsRequest(changed, validate_only=True)
    yield "IncrementalAlterConfigs", alter, 1
    moved = ard.AlterReplicaLogDir("/nowhere", [ard.AlterReplicaLogDirTopic("secret-none", [0])])
    yield "AlterReplicaLogDirs", ard.AlterReplicaLogDirsRequest([moved]), 2
    dirs = dl.DescribeLogDirsRequest([dl.DescribableLogDirTopic("secret-none", [0])])
    yield "DescribeLogDirs", dirs, 4
    more = cp.CreatePartitionsRequest(
        [cp.CreatePartitionsTopic(TOPIC, 2, None)], timeout_ms=5000, validate_only=True
    )
    yield "CreatePartitions", more, 3
    yield "DeleteGroups", dg.DeleteGroupsRequest(["secret-none"]), 2
    elected = el.ElectLeadersRequest(0, [el.TopicPartitions("secret-none", [0])])
    yield "ElectLeaders", elected, 2
    moving = apr.ReassignableTopic(
        "secret-none", [apr.ReassignablePartition(partition_index=0, replicas=[1])]
    )
    yield "AlterPartitionReassignments", apr.AlterPartitionReassignmentsRequest(topics=[moving]), 0
    yield "ListPartitionReassignments", lpr.ListPartitionReassignmentsRequest(topics=None), 0
    gone = od.OffsetDeleteRequestTopic(TOPIC, [od.OffsetDeleteRequestPartition(0)])
    yield "OffsetDelete", od.OffsetDeleteRequest("secret-none", [gone]), 0
    of_user = dcq.ComponentData("user", 0, "secret-none")
    yield "DescribeClientQuotas", dcq.DescribeClientQuotasRequest([of_user], strict=True), 1
    limit = acq.EntryData([acq.EntityData("user", "secret-none")], [acq.OpData("x", 0.0, True)])
    yield "AlterClientQuotas", acq.AlterClientQuotasRequest([limit]), 1
    nobody = dus.DescribeUserScramCredentialsRequest(users=[dus.UserName("secret-none")])
    yield "DescribeUserScramCredentials", nobody, 0
    deleted = aus.ScramCredentialDeletion("secret-none", 1)
    yield "AlterUserScramCredentials", aus.AlterUserScramCredentialsRequest([deleted]), 0
    yield "UpdateFeatures", uf.UpdateFeaturesRequest(feature_updates=[]), 1
    yield "DescribeCluster", dsc.DescribeClusterRequest(), 1
    reported = dsc.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield "DescribeCluster with operations", reported, 1
    producers = dp.DescribeProducersRequest([dp.TopicRequest(TOPIC, [0])])
    yield "DescribeProducers", producers, 0
    yield "DescribeTransactions", dst.DescribeTransactionsRequest([TRANSACTION]), 0
    yield "ListTransactions", lt.ListTransactionsRequest(), 1
    beat = cgh.ConsumerGroupHeartbeatRequest(
        group_id="secret-new-group",
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        rebalance_timeout_ms=6000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    yield "ConsumerGroupHeartbeat", beat, 1
    yield "ConsumerGroupDescribe", cgd.ConsumerGroupDescribeRequest([GROUP]), 0
    yield from _of_share_groups()
    yield from _of_share_state()
    yield from _of_streams_groups()
    yield "ListConfigResources", lc.ListConfigResourcesRequest([]), 1
    page = dtp.DescribeTopicPartitionsRequest([dtp.TopicRequest(TOPIC)])
    yield "DescribeTopicPartitions", page, 0
    yield "DescribeTopicPartitions of all", dtp.DescribeTopicPartitionsRequest(), 0


def _of_streams_groups() -> Iterator[tuple[str, Message, int]]:
    join = sth.StreamsGroupHeartbeatRequest(
        group_id="secret-streams-group",
        member_id="AAAAAAAAAAAAAAAAAAAAAg",
        rebalance_timeout_ms=60_000,
        topology=sth.Topology(0, [sth.Subtopology("0", [TOPIC])]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )
    yield "StreamsGroupHeartbeat", join, 0
    yield "StreamsGroupDescribe", std.StreamsGroupDescribeRequest([GROUP]), 0


def _of_share_groups() -> Iterator[tuple[str, Message, int]]:
    member = "AAAAAAAAAAAAAAAAAAAAAg"
    join = sgh.ShareGroupHeartbeatRequest(
        group_id="secret-share-group", member_id=member, subscribed_topic_names=[TOPIC]
    )
    yield "ShareGroupHeartbeat", join, 1
    yield "ShareGroupDescribe", sgd.ShareGroupDescribeRequest([GROUP]), 1
    yield "ShareFetch", sf.ShareFetchRequest(GROUP, member, max_records=1), 1
    yield "ShareAcknowledge", sa.ShareAcknowledgeRequest(GROUP, member, 1), 1
    asked = dso.DescribeShareGroupOffsetsRequestTopic(TOPIC, [0])
    of_group = dso.DescribeShareGroupOffsetsRequestGroup(GROUP, [asked])
    yield "DescribeShareGroupOffsets", dso.DescribeShareGroupOffsetsRequest([of_group]), 0
    start = aso.AlterShareGroupOffsetsRequestTopic(
        TOPIC, [aso.AlterShareGroupOffsetsRequestPartition(0, 0)]
    )
    yield "AlterShareGroupOffsets", aso.AlterShareGroupOffsetsRequest(GROUP, [start]), 0
    gone = xso.DeleteShareGroupOffsetsRequestTopic(TOPIC)
    yield "DeleteShareGroupOffsets", xso.DeleteShareGroupOffsetsRequest(GROUP, [gone]), 0


def _of_share_state() -> Iterator[tuple[str, Message, int]]:
    """Requests of partition leaders to a share coordinator, and the search for that coordinator."""
    key = f"{GROUP}:{urlsafe_b64encode(NO_TOPIC).decode().rstrip('=')}:0"
    where = fc.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    yield "FindCoordinator of share state", where, 6
    new = iss.InitializeStateData(NO_TOPIC, [iss.PartitionData(0, 0, 0)])
    yield "InitializeShareGroupState", iss.InitializeShareGroupStateRequest(GROUP, [new]), 0
    read = rss.ReadStateData(NO_TOPIC, [rss.PartitionData(0, 0)])
    yield "ReadShareGroupState", rss.ReadShareGroupStateRequest(GROUP, [read]), 0
    kept = wss.WriteStateData(NO_TOPIC, [wss.PartitionData(0, 0, 0, 0)])
    yield "WriteShareGroupState", wss.WriteShareGroupStateRequest(GROUP, [kept]), 0
    short = sss.ReadStateSummaryData(NO_TOPIC, [sss.PartitionData(0, 0)])
    yield "ReadShareGroupStateSummary", sss.ReadShareGroupStateSummaryRequest(GROUP, [short]), 0
    gone = xss.DeleteStateData(NO_TOPIC, [xss.PartitionData(0)])
    yield "DeleteShareGroupState", xss.DeleteShareGroupStateRequest(GROUP, [gone]), 0


def reported(message: Any) -> list[str]:
    """The names of topics, groups and transactions in a message, in order."""
    if isinstance(message, str):
        return [message] if message.startswith(SECRET) else []
    if isinstance(message, msgspec.Struct):
        return [
            each for name in message.__struct_fields__ for each in reported(getattr(message, name))
        ]
    return (
        [each for part in message for each in reported(part)] if isinstance(message, list) else []
    )


def codes(response: Any) -> list[tuple[str, int]]:
    """All error codes of a response, in order, and the authorized operations that it contains."""
    found: list[tuple[str, int]] = []
    _collect(response, found)
    return found


def _collect(value: Any, found: list[tuple[str, int]]) -> None:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            part = getattr(value, name)
            if name.endswith(("error_code", "authorized_operations")):
                found.append((name, part))
            else:
                _collect(part, found)
    elif isinstance(value, list):
        for each in value:
            _collect(each, found)
