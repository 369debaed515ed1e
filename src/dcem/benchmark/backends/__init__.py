"""Where fleets are trained: here, or on a cluster."""
