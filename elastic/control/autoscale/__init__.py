"""The autoscaler: a policy turns the measured load into a node count; the autoscaler enforces bounds and cool-downs.

A policy is a small class behind `Policy` and an entry in `POLICIES`, or an object passed to `job.autoscale`.
"""

from elastic.control.autoscale.autoscaler import Autoscaler
from elastic.control.autoscale.imbalance import Imbalance
from elastic.control.autoscale.policy import Decision, Observation, Policy
from elastic.control.autoscale.settings import POLICIES, AutoscalerSettings
from elastic.control.autoscale.utilisation import Utilisation

__all__ = [
    "POLICIES",
    "Autoscaler",
    "AutoscalerSettings",
    "Decision",
    "Imbalance",
    "Observation",
    "Policy",
    "Utilisation",
]
