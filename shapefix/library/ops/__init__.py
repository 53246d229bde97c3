"""torch functions and tensor methods, grouped by their effect on a layout."""
