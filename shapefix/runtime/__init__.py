"""The probe: runs one real batch of a user's script in the user's own interpreter."""
