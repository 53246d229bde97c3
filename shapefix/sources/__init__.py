"""Find and read source files, their configuration, suppressions and project."""
