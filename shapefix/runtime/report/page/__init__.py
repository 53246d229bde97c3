"""The HTML page of a run: one self-contained file that loads nothing over the network."""
