"""The charts of the experiments, one file each."""
