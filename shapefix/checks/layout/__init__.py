"""Rules SF1xx: views, strides, and shape operations without effect."""
