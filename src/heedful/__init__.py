"""Heedful: attention-based sequence models, from a user's pairs to a measured, visible, servable model."""
