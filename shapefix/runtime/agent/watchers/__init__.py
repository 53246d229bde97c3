"""Watchers for faults that raise no exception."""
