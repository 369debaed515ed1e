"""The paper's simulation."""
