"""Diagnosis and capacity planning for a cluster, shared by commands and pages."""
