"""Fitting the constants of kernel formulas to measured kernels."""
