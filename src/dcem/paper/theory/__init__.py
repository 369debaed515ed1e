"""The paper's theorems as code, and their figures."""
