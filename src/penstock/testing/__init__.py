"""Test kit for Penstock itself and for applications that use it."""
