"""Reports: the JSON contract, the rows drawn from it, and one file per renderer."""
