"""Retries without blocking: what fails comes back later, and ends as a dead letter.

    orders ──> this consumer ──(fails)──> orders-again ──(due)──> orders
                                               └──(too many attempts)──> orders-again.dlq

The consumer sends an order that fails to the retry topic, with all headers that it got. The delay
service keeps it by its next time (in a file, or in a sorted set of Redis), and sends it back to
`orders` when that has come. Meanwhile the consumer goes on with other orders. After three attempts
an order is a dead letter, which `penstock dlq redrive` sends back once the cause is mended.

The order's retry and the position of the consumer are one transaction: a crash in between neither
loses nor doubles a retry.

    python examples/retry_orders.py 127.0.0.1:9092
"""

import sys
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ORDERS, AGAIN, DEAD = "orders", "orders-again", "orders-again.dlq"
RETRY = {
    "penstock.retry.to": ORDERS,
    "penstock.retry.backoff": "200ms,400ms,800ms",
    "penstock.dlq.topic": DEAD,
}
STOCK = {"apples": 1, "pears": 3}
"""Goods, and the attempt at which they are in stock again. There are never any plums."""


class OutOfStockError(Exception):
    """The order may succeed later."""


@dataclass
class Shop:
    """What became of the orders."""

    sold: dict[str, int] = field(default_factory=dict)
    """Goods by the attempt at which they were sold."""

    def handle(self, order: str, attempt: int) -> None:
        if attempt < STOCK.get(order, sys.maxsize):
            raise OutOfStockError(f"no {order} in stock")
        self.sold[order] = attempt


def attempt_of(message: Message) -> int:
    """The first try is attempt 0; a retry says its own number."""
    return int(dict(message.headers() or []).get("penstock-attempt") or 0)


def text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


def serve(consumer: Consumer, producer: Producer, shop: Shop, orders: int) -> list[Message]:
    """Handle orders until each is sold or dead; returns the dead letters."""
    dead: list[Message] = []
    while len(shop.sold) + len(dead) < orders:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        if message.topic() == DEAD:
            dead.append(message)
            continue
        order, attempt = text(message.value()), attempt_of(message)
        producer.begin_transaction()
        try:
            shop.handle(order, attempt)
            print(f"{order}: sold at attempt {attempt}", flush=True)
        except OutOfStockError as failure:
            print(f"{order}: attempt {attempt} failed, {failure}", flush=True)
            headers = dict(message.headers() or []) | {"penstock-error": str(failure)}
            producer.produce(AGAIN, message.value(), message.key(), headers=headers)
        position = TopicPartition(ORDERS, message.partition() or 0, (message.offset() or 0) + 1)
        producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata())
        producer.commit_transaction()
    return dead


def main(bootstrap: str) -> int:
    servers: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(servers)
    topics = [NewTopic(ORDERS, 1), NewTopic(AGAIN, 1, config=RETRY), NewTopic(DEAD, 1)]
    for made in admin.create_topics(topics).values():
        made.result(10)
    producer = Producer({**servers, "transactional.id": "shop"})
    producer.init_transactions(10)
    producer.begin_transaction()
    for order in ("apples", "pears", "plums"):
        producer.produce(ORDERS, order, key=order)
    producer.commit_transaction()
    consumer = Consumer(
        {
            **servers,
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([ORDERS, DEAD])
    for letter in serve(consumer, producer, Shop(), 3):
        reason = text(dict(letter.headers() or [])["penstock-error"])
        print(f"{text(letter.value())}: dead letter, {reason}", flush=True)
    consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"))
