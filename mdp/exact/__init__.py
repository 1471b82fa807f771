"""Exact projected migration costs of all balanced partitions, with a proven error."""

from mdp.exact.iteration import DEFAULT_ERROR, ExactProjection, project_exactly

__all__ = ["DEFAULT_ERROR", "ExactProjection", "project_exactly"]
