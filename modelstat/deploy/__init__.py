"""Questions before deployment: another precision, a range of batches, several GPUs, how many GPUs. Nothing here imports torch."""
