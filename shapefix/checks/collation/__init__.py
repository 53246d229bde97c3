"""Rules SF3xx: padding, ragged rows and pad tokens."""
