"""Rules SF2xx: labels that are copied, aliased, masked or shifted wrongly."""
