"""Findings from the observations of a run."""
