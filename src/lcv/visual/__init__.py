"""Layer 3: pictures of flow, of errors and of W."""
