"""Diagnostics made from the observations of a probe run."""
