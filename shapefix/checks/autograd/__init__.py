"""Rules SF9xx: the autograd graph and the backward pass."""
