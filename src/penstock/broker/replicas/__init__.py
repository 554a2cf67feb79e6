"""The replicas of this broker: applies state changes, throttles, and finds strays."""
