"""GPU memory forecasts: the peak of a training step, and the largest batch that fits."""
