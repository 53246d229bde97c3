"""The places of the names in a message: arguments, attributes, metrics, functions given to a library."""
