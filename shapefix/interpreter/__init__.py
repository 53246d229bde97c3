"""Abstract interpreter over libcst trees: runs a file on facts instead of data and emits events.

It knows the Python language. Functions of torch and other libraries come from a `Library`; facts of the field
are attached by the `domains` package through `ev.state` and hooks.
"""
