"""The memory of a GPU that is not there: what lives on it, and what PyTorch's allocator reserves for it."""
