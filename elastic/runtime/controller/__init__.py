"""The controller on the driver: it carries out what the protocol's coordinator decides."""

from elastic.runtime.controller.controller import Controller, JobParts, Route

__all__ = ["Controller", "JobParts", "Route"]
