"""Watches for what goes wrong without an exception."""
