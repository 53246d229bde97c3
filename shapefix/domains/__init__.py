"""Facts of the field: one module per family, with its state of a run, its events and its hooks.

State is attached to a run by its type: `ev.state[Gradients]`. Hooks are registered on import; the library
imports every domain that it uses, so that filling the tables registers them all.
"""
