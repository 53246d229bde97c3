"""Rules SF8xx: training and evaluation loops."""
