"""Rules SF5xx: mismatched sizes and dtypes."""
