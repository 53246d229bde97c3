"""Domain facts for the interpreter: one module per family, with its state, events and hooks.

State is attached to a run by its type: `ev.state[Gradients]`. Hooks are registered on import; the library
imports every domain that it uses, so that filling the tables registers them all.
"""
