"""The one exception of the algebra."""


class ShapeError(ValueError):
    """torch would raise, whatever the values of the symbols; the message says why, in sizes."""
