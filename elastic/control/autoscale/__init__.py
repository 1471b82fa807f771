"""The autoscaler: a policy turns what the monitor measured into a node count; the rest keeps it within bounds.

A policy is one small class behind `Policy` and one entry in `POLICIES`, or an object handed to `job.autoscale`.
"""

from elastic.control.autoscale.autoscaler import Autoscaler
from elastic.control.autoscale.autoscaling import Autoscaling
from elastic.control.autoscale.policies import POLICIES
from elastic.control.autoscale.policy import Decision, Observation, Policy
from elastic.control.autoscale.utilisation import Utilisation

__all__ = ["POLICIES", "Autoscaler", "Autoscaling", "Decision", "Observation", "Policy", "Utilisation"]
