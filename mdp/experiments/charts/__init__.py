"""The charts of the experiments, one file each, and their common style."""
