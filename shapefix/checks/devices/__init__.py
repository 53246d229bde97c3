"""Rules SF6xx: devices, discarded results, parameters and optimizers."""
