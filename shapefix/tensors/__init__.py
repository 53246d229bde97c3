"""The algebra of tensors: symbolic sizes, strides, the legality of views, dtypes."""
