"""The charts of the experiments of paper 004."""
