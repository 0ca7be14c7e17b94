"""Layer 4: numbers that say how good a flow is."""
