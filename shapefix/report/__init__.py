"""Shows findings: one module per output format, all of them listed in formats.py."""
