"""The command `probe`: what was asked for, what is run for it, and what is shown of it."""
