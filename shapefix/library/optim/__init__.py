"""torch.optim and torch.amp: optimizers, schedulers, scalers, and the gradients between them.

Known facts of the gradients and of the modes of modules are in `Evaluator.state`.
"""
