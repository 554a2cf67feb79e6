"""Backups of a single node: `penstock backup` and `penstock restore`.

A backup is the image that `kill -9` would leave at one moment, copied while the broker continues.
Every start can read such an image, so a restore needs nothing beyond normal recovery.
"""
