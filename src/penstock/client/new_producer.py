"""Creates the producer that a client's settings ask for."""

from penstock.client.cluster import Client
from penstock.client.produce import IdempotentProducer, PlainProducer
from penstock.client.producer_session import ProducerSettings
from penstock.client.record_sender import BATCH_BYTES
from penstock.client.transactional_producer import TransactionalProducer


def new_producer(
    client: Client,
    settings: ProducerSettings,
    *,
    create_topics: bool = False,
    batch_bytes: int = BATCH_BYTES,
) -> IdempotentProducer | PlainProducer | TransactionalProducer:
    """Transactional if `transactional.id` is set, else idempotent if enabled, else plain."""
    if settings.transactional_id is not None:
        return TransactionalProducer(
            client,
            settings.transactional_id,
            timeout_ms=settings.transaction_timeout_ms,
            codec=settings.codec,
            create_topics=create_topics,
            batch_bytes=batch_bytes,
        )
    if settings.idempotent:
        return IdempotentProducer(
            client, codec=settings.codec, create_topics=create_topics, batch_bytes=batch_bytes
        )
    return PlainProducer(
        client,
        acks=settings.acks,
        codec=settings.codec,
        create_topics=create_topics,
        batch_bytes=batch_bytes,
    )
