"""Many models at once: a grid of analyses on a Dask cluster, each model in a process of its own, the results in Parquet."""
