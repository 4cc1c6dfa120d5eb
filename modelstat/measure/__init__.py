"""Real timings: local runs, beside the predicted ones."""
