"""An abstract interpreter over libcst trees: it runs a file on facts instead of data, and emits events.

It knows Python, and no library: what torch or transformers do to a value it asks the `Library` it is given.
"""
