"""Layer 3: records, files and datasets."""
