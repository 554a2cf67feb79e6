"""`serve --workers N`: uses the cores of a machine as brokers of one cluster, under one supervisor.

`prepare` lays out the data directory for N workers. `supervisor` starts and restarts the processes:
the workers (`worker`), and the owner of their metadata store (`store_process`).
"""
