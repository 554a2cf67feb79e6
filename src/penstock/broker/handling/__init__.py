"""Wrappers around handlers: forwarding to the controller, quota charges, handling in turns."""
