"""Modalities: the kinds of inputs. Each file reads, divides into features, and draws one kind."""
