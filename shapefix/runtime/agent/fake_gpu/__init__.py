"""A simulated GPU: tensors with sizes but no values, and PyTorch's reserved memory for them."""
