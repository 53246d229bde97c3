"""Runs one real batch of a user's script, in a process of the user's interpreter, and tells what happened."""
