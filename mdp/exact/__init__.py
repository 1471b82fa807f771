"""Projected migration costs over all balanced partitions, exact to a proven error."""

from mdp.exact.iteration import DEFAULT_ERROR, ExactProjection, Progress, project_exactly

__all__ = ["DEFAULT_ERROR", "ExactProjection", "Progress", "project_exactly"]
