"""Layer 2: only what two networks share."""
