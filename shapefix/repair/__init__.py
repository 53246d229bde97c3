"""From findings to repaired text: edits, imports, rounds to a fixpoint, the difference, and safe writes."""
