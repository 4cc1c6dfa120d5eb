"""Files that profilers write, as measured kernels. Nothing here needs torch."""
