"""Layer 6: the command line; parsing and wiring only."""
