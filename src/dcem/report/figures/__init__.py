"""Pictures, each from a plain result."""
