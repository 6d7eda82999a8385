"""Explainers: from cases to an order of their features. One family a file; classes register themselves by name."""
