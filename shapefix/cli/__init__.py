"""The command line: commands, options, output streams and exit codes."""
