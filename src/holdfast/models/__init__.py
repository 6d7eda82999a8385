"""Models: what a classifier can do, and the kinds of classifiers that can be asked."""
