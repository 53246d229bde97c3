"""The part of the probe in the user's process: the standard library, torch, and the protocol only."""
