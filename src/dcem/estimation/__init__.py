"""Truth missing: what audit and comparison share."""
