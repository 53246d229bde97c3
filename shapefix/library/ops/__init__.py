"""torch functions and tensor methods, by what they do to a layout."""
