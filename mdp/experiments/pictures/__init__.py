"""The pictures of the experiments, one file each, and the style that they share."""
