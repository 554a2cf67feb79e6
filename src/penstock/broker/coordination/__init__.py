"""The coordinators of groups and transactions on top of this broker's logs."""
