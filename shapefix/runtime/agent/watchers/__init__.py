"""Watchers for faults without an exception."""
