"""Run checks and repairs over files: sessions, tasks, workers and the cache."""
