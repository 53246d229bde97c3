"""Rules SF7xx: graphs and activations kept in memory."""
