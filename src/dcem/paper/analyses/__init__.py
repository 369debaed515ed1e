"""What follows from the exhibits: claims, ranks, robustness."""
