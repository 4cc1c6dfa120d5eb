"""Memory: what a model holds while it runs, from the births and deaths in its trace."""
