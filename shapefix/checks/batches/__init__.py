"""Rules SF4xx: batch keys, forward signatures and the Trainer's contract."""
