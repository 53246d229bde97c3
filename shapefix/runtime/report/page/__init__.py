"""The HTML page of a run: one self-contained file without network access."""
