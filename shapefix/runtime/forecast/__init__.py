"""GPU memory forecasts: the peak of a training step, and the largest fitting batch."""
