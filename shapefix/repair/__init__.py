"""Apply fixes to text: edits, imports, rounds to a fixpoint, diffs, and atomic writes."""
