"""Modalities: kinds of inputs. One file each: how they are read, what their features are, and how they are drawn."""
