"""Which instance of a registry writes."""

import msgspec

from penstock.registry.election import Assignment, Identity, elected, identity_of


def test_a_member_without_a_registry_identity_is_skipped() -> None:
    own = Identity("127.0.0.1", 8081)
    members = {
        "a": identity_of(b"\xff"),
        "b": identity_of(b'{"host": "\xff", "port": 1}'),
        "c": identity_of(msgspec.json.encode(own)),
    }
    assert elected(members) == Assignment(leader="c", identity=own)
