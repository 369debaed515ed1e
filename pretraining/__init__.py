"""Training of the small network that learns in context from simulated selective labels."""
