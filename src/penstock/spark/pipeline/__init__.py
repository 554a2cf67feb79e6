"""Pipelines: projects of Spark Declarative Pipelines, and what Penstock adds to them."""
