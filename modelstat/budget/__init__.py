"""Budgets: what a model may cost, as data, checked in a pull request. Nothing here imports torch before a model has to be walked."""
