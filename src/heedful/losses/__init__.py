"""Losses: each returns a ``LossSum`` (a sum and what was counted), and knows no model."""

from heedful.losses.cross_entropy import classification_loss, cross_entropy

__all__ = ["classification_loss", "cross_entropy"]
