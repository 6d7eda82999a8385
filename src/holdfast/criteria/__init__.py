"""Criteria: one file each, registered by name when they are imported."""
