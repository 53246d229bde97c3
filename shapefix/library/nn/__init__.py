"""torch.nn and torch.nn.functional: layers by family, each beside the functions that do the same."""
