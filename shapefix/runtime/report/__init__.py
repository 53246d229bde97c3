"""Reports of a probe run: text, JSON, and an HTML page."""
