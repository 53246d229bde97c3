"""Diagnosis of an error: read it from a log, explain its message, find its cause."""
