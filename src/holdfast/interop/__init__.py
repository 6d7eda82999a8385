"""Doors to other libraries: their explanations judged here, and ours used there."""
