"""The rules: one file each, with one registered function from layer to layer. Every file here is loaded by the registry."""
