"""The command line: commands, their options, and what goes to which stream."""
