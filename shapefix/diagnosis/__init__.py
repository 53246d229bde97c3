"""Errors that happened: read them from logs, explain their messages, find their causes."""
