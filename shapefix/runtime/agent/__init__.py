"""Runs inside the user's process: standard library and torch only, and nothing of shapefix."""
