"""Turns the facts in Kafka's own message schemas into our declarations (`python -m codegen`)."""
