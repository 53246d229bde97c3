"""Repairs a script by running it: a repair is kept where a run of the repaired copy has proved it."""
