"""Layer 6: the paper's experiments, as data and the loops that run them."""
