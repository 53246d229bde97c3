"""Text in: which files, what they say, which settings and suppressions hold, what is already known."""
