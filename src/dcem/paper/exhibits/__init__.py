"""Every figure and table of the paper."""
