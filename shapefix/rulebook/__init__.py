"""The rule book: one Markdown page per rule, read without loading any rule."""
