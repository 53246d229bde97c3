"""Data on its way to a model: torch.utils.data, Hugging Face datasets, collators."""
