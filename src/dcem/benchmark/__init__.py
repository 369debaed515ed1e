"""The benchmark: many tasks, many methods, one store that never loses a result.

A benchmark is a small TOML file that names tasks, methods and metrics. Every combination is a
*cell*. Cells of equal shape train together as one fleet; each finished cell is committed at once,
so that a run can be stopped, killed, continued elsewhere and shared between processes.
"""
