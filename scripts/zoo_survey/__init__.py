"""What scripts/survey is made of: the sets of models, the published counts, and the page."""
