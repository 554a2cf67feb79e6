"""Orders and the payments that came within an hour of them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.spark.pipeline.define import to_topic, topic_source

orders = topic_source(
    "orders", format="json", schema="order_id string, total double, ordered_at timestamp"
)
payments = topic_source(
    "payments", format="json", schema="payment_of string, paid double, paid_at timestamp"
)


@to_topic("orders-paid", key="order_id")
def orders_paid() -> DataFrame:
    due = orders().withWatermark("ordered_at", "10 minutes")
    came = payments().withWatermark("paid_at", "10 minutes")
    belongs = F.col("order_id") == F.col("payment_of")
    in_time = F.col("paid_at").between(
        F.col("ordered_at"), F.col("ordered_at") + F.expr("interval 1 hour")
    )
    is_whole = F.col("paid") >= F.col("total")
    return due.join(came, belongs & in_time, how="inner").select(
        "order_id", "total", "paid", "paid_at", is_whole.alias("whole")
    )
