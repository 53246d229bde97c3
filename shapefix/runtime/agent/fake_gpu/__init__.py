"""A simulated GPU: tensors with sizes but no values, and the memory that PyTorch would reserve for them."""
