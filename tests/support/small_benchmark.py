"""A benchmark of twelve cells, small enough for any test."""

SMALL = """
about = "Small enough for a test."

[[tasks]]
phase = [0, 120]
n_train = 300
n_validation = 300
n_test = 300
stream = "independent"
seed = [0, 1, 2]
"""

PLAIN = (
    SMALL
    + """
[[methods]]
name = ["y-obs", "tested-only"]
params = {steps = 20, hidden = [8]}
"""
)
