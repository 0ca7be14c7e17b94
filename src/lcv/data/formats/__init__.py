"""One file a format: read it, write it, refuse it when damaged."""
