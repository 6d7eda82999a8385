"""Explainers: one family a file, registered by name when they are imported."""
