"""Language models: the phases of their work, the cache of keys and values, routed experts, and what serving them takes."""
