"""Shared parts of rules: evidence, wording, rewrites and syntax queries."""
