"""Hugging Face transformers: tokenizers, models, and the Trainer."""
