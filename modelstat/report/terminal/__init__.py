"""Charts made of characters."""
