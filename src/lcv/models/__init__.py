"""Layer 3: the networks, each complete in its own folder, each taking an inner product."""
