"""The interactive report: one HTML page that needs no network."""
