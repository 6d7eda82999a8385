"""Trials: random attempts to break holdfast, repeatable by seed.

Every module ``trial.*_trial`` has a function ``trial(count, seed) -> Tally`` and the constants ``SHORT`` and ``LONG``:
how many attempts the tests and the long form make. ``make trial`` runs the long forms.
"""
