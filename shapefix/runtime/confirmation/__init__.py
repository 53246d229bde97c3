"""Compare the findings of `check` with a probe run: confirmed, refuted, or left open."""
