"""Wires the rooms: paths in, findings and repairs out."""
