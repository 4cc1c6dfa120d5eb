"""Accelerators as data: the database, definitions by the user, and the peaks that a roofline needs."""
