"""The request that finds the coordinator of a group or transactional id, and its response."""

from penstock.client.address import Address
from penstock.client.errors import check
from penstock.client.route import ToCoordinator
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse


def find_coordinator_request(to: ToCoordinator) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=to.key, key_type=to.type, coordinator_keys=[to.key])


def coordinator_address(to: ToCoordinator, response: FindCoordinatorResponse) -> Address:
    """Where the coordinator listens; raises the response's error."""
    # Up to version 3 the response itself describes the one coordinator.
    found = response.coordinators[0] if response.coordinators else response
    check(found.error_code, f"coordinator of {to.key}", found.error_message)
    return Address(found.host, found.port)
