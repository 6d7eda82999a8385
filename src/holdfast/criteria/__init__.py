"""Criteria: how good a set of relevant features is. One family a file; classes register themselves by name."""
