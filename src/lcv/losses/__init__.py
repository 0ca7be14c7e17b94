"""Layer 3: what training minimises."""
