"""The restart matrix: everything that may change between two runs of a job is changed, pairwise."""
