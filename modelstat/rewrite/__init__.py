"""Swaps of layers: a rule turns one layer into another, and a model is rewritten layer by layer."""
