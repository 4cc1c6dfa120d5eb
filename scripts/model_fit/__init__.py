"""Whole models: measured times against predicted ones, and the fit of the constants that only whole models show."""
