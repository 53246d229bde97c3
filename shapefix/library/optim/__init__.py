"""torch.optim and torch.amp: optimizers, schedulers, scalers, and the gradients between them.

What is known of the gradients, and of the modes of modules, stands in `Evaluator.training`.
"""
