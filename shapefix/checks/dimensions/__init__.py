"""Rules SF5xx: sizes and dtypes that do not fit together."""
