"""What a run of the probe says of what `check` finds: confirmed, refuted, or left open."""
