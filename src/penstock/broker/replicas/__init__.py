"""Replicas of the broker: state changes carried out, throttles, strays."""
