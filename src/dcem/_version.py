"""The version, alone in its file so that `dcem --version` imports nothing."""

__version__ = "0.1.0"
