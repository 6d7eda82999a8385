"""Tree ensembles as arrays: their scores, readers of other libraries' models, and exact radii. No torch."""
