"""Client quotas, measured as in Kafka. These modules decide; sessions throttle."""
