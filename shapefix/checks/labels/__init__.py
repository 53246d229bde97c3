"""Rules SF2xx: wrongly copied, aliased, masked or shifted labels."""
