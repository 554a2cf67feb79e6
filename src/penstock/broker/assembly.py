"""The second step of a start: builds the parts of a broker, each with just what it uses."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from weakref import WeakValueDictionary

from msgspec import Struct

from penstock.broker.acls.authorizer import Authorizer
from penstock.broker.context import (
    CheckStores,
    Control,
    Coordination,
    Listeners,
    Replicas,
    Resources,
    Services,
    ShareGroups,
    any_stores,
)
from penstock.broker.coordination.coordinator_log import PartitionCoordinatorLog
from penstock.broker.coordination.coordinators import (
    Coordinators,
    group_coordinator,
    share_coordinator,
    transaction_coordinator,
)
from penstock.broker.delegation.tokens import DelegationTokens
from penstock.broker.fetch.sessions import FetchSessions
from penstock.broker.handlers.table import HANDLERS
from penstock.broker.machine import Machine
from penstock.broker.peers.cluster_member import ClusterMember
from penstock.broker.peers.connections import PeerConnections
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.broker.replicas.environment import environment
from penstock.broker.replicas.local import LocalBroker
from penstock.broker.replicas.throttles import LeaderThrottle
from penstock.broker.share.dead_letter_writer import DeadLetterWriter
from penstock.broker.share.persister import Persister
from penstock.broker.share.share_partitions import SharePartitions
from penstock.broker.storage import Storage
from penstock.broker.telemetry.clients import TelemetryClients
from penstock.broker.transaction.marker_outbox import marker_outbox
from penstock.broker.transaction.markers import ClusterMarkers, MarkerLogs
from penstock.broker.transaction.producer_ids import ProducerIdPool
from penstock.broker.transaction.verification import PendingVerifications
from penstock.broker.transaction.verification_outbox import verification_outbox
from penstock.broker.transaction.verifier import TransactionVerifier
from penstock.broker.translate.internal_topics import (
    create_dead_letter_topic,
    ensure_internal_topic,
)
from penstock.broker.waiters import Waiters
from penstock.client.security import ClientSecurity
from penstock.config.broker import BrokerConfig
from penstock.config.listener import Endpoint
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.share.coordinator import TOPIC as SHARE_GROUP_STATE
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.log.compaction.compactor import Compactor
from penstock.log.flush import Flusher
from penstock.record.compression import Codec
from penstock.replication.log_dir_moves import LogDirMoves
from penstock.replication.partitions import Partitions
from penstock.replication.proposal import IsrProposal

SCRATCH_BYTES = 1 << 20
"""Most decompressed batches fit; larger ones get memory of their own."""


class Parts(Struct, frozen=True):
    """The handlers' services, and the parts that the composition root runs."""

    services: Services
    member: ClusterMember
    peers: PeerConnections
    compactor: Compactor


def assemble(
    storage: Storage,
    config: BrokerConfig,
    machine: Machine,
    flusher: Flusher,
    worker: Executor,
    checker: Executor,
    tasks: asyncio.TaskGroup,
    addresses: Sequence[Endpoint],
    between_brokers: Callable[[], ClientSecurity],
    delegation_tokens: DelegationTokens,
    authorizer: Authorizer | None = None,
    check_stores: CheckStores = any_stores,
) -> Parts:
    """Build all parts; nothing runs yet. Callbacks of the log store are bound last."""
    loop, clock, chance = asyncio.get_running_loop(), machine.clock, machine.chance
    broker_id, cluster, logs = storage.broker_id, storage.cluster, storage.logs

    def propose(proposal: IsrProposal) -> None:
        # `member` is bound by then: partitions lead only after the broker has joined.
        member.propose(proposal)

    compactor = Compactor(storage.files, logs.logs.values, clock, lambda: cluster.config.storage)
    waiters = Waiters(loop)
    quotas = ClientQuotas(cluster.image.client_configs, config.quota, clock.monotonic_ms)
    partitions = Partitions(
        broker_id, logs, environment(cluster, waiters, flusher, clock, propose=propose)
    )
    moves = LogDirMoves(
        partitions,
        flusher,
        clock,
        on_replaced=lambda log: compactor.truncated(log, 0),
        rate=lambda: cluster.config.replication.replica_alter_log_dirs_io_max_bytes_per_second,
        at_once=config.replication.num_replica_alter_log_dirs_threads,
    )

    peers = PeerConnections(broker_id, cluster, between_brokers)
    remote_markers = marker_outbox(tasks, peers.to)
    remote_verifications = verification_outbox(tasks, peers.to)
    groups = group_coordinator(
        config.group, config.share, config.streams, cluster, loop, clock, waiters
    )
    shares = share_coordinator(config.share, cluster, loop, clock, waiters)
    persister = Persister(broker_id, cluster, partitions, shares, waiters, clock, tasks, peers.to)
    dead_letters = DeadLetterWriter(cluster, clock, tasks, peers.to)
    verifications = PendingVerifications()
    markers = MarkerLogs(partitions, groups, clock, verifications)
    transactions = transaction_coordinator(
        config.transaction,
        cluster,
        loop,
        clock,
        waiters,
        ClusterMarkers(broker_id, cluster, partitions, markers, waiters, remote_markers.post),
    )
    verifier = TransactionVerifier(
        broker_id,
        cluster,
        partitions,
        transactions,
        waiters,
        verifications,
        remote_verifications.post,
    )
    codecs = {CONSUMER_OFFSETS: Codec(config.group.offsets_topic_compression_codec)}
    coordinators = Coordinators(
        {
            CONSUMER_OFFSETS: groups.runtime,
            TRANSACTION_STATE: transactions.runtime,
            SHARE_GROUP_STATE: shares.runtime,
        },
        lambda partition: PartitionCoordinatorLog(
            partition,
            waiters,
            codecs.get(partition.topic_partition.topic, Codec.NONE),
        ),
        groups.partitions_deleted,
        (groups.partition_count, transactions.partition_count, shares.partition_count),
    )

    member = ClusterMember(
        broker_id,
        storage.metadata,
        cluster,
        partitions,
        tasks,
        peers,
        addresses=addresses,
        make_local=lambda copying, alive: LocalBroker(
            broker_id,
            cluster,
            partitions,
            copying,
            waiters,
            compactor,
            coordinators,
            clock,
            flusher.off_loop,
            alive,
            quotas.use,
        ),
        outboxes=(remote_markers, remote_verifications),
        before_truncation=compactor.truncated,
        flush=flusher.request,
        unclean_shutdown=storage.unclean_shutdown,
        on_resolved=storage.logs.clear_unclean_shutdown,
        is_standalone=storage.is_standalone,
        clock=clock,
        chance=chance,
    )
    services = Services(
        broker_id,
        cluster,
        waiters,
        Listeners(
            served=frozenset(HANDLERS),
            clustered=not storage.is_standalone,
            inter_broker_listener=config.listener.inter_broker(),
        ),
        Control(member.controller, member.link, member.control_plane),
        Coordination(
            groups,
            transactions,
            verifier,
            markers,
            ProducerIdPool(member.link.next_producer_id_block),
        ),
        ShareGroups(
            shares,
            persister,
            SharePartitions(
                cluster,
                None if storage.is_standalone else storage.metadata,
                persister,
                waiters,
                loop,
                clock,
                dead_letters,
                worker,
            ),
            dead_letters,
            WeakValueDictionary(),
        ),
        Replicas(
            partitions,
            moves,
            LeaderThrottle(broker_id, cluster, clock.monotonic_ms),
        ),
        Resources(clock, chance, worker, checker, bytearray(SCRATCH_BYTES), storage.file_shares),
        FetchSessions(
            config.network.max_incremental_fetch_session_cache_slots,
            lambda: chance.randrange(1, 2**31),
            clock.monotonic_ms,
            lambda: sum(len(topic.partitions) for topic in cluster.image.topics.values()),
        ),
        delegation_tokens,
        encoded_topics={},
        quotas=quotas,
        telemetry=TelemetryClients(),
        authorizer=authorizer,
        check_stores=check_stores,
    )
    logs.on_offline = lambda log_dir, _: member.directory_failed(log_dir.path)
    logs.before_create = lambda log_dir, tp: compactor.forget(log_dir, [tp])
    persister.ensure_topic = lambda: ensure_internal_topic(SHARE_GROUP_STATE, services)
    dead_letters.create_topic = lambda name: create_dead_letter_topic(name, services)
    return Parts(services, member, peers, compactor)
