"""The embedded store, served by the process that owns its file to other processes of the machine.

They speak over a Unix socket: frames of msgpack (`messages`), requests answered in order. `server`
has the tree and its sessions, `store` implements `MetadataStore` on a session.
"""
