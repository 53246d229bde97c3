"""torch.nn and torch.nn.functional: layers by family, each next to its functional form."""
