"""Repair a script by running it: a repair is accepted if a run of the repaired copy proves it."""
