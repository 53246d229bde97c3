"""The language server: findings, repairs and sizes in an editor."""
