"""`serve --workers N`: the cores of a machine as brokers of one cluster, under one supervisor.

`prepare` lays the data directory out for N workers, `supervisor` starts the processes and starts
again what dies: the workers (`worker`), and the owner of their metadata store (`store_process`).
"""
