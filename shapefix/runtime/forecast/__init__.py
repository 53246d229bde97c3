"""GPU memory forecasts: the peak of a training step, and the batch that fits."""
