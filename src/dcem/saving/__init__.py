"""Models as folders without pickle: weights in safetensors, everything else in JSON, and a card."""

from dcem.saving.folder import ModelFileError, load_model, save

__all__ = ["ModelFileError", "load_model", "save"]
