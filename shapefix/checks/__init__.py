"""The rules: each turns events of the interpreter into diagnostics with evidence and fixes."""
