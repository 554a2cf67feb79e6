"""Generates our message declarations from Kafka's own schemas (`python -m codegen`)."""
