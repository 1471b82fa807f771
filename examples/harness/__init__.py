"""Runs an application window by window, in threads or on Spark, and compares every window with a batch computation."""

from examples.harness.application import Application, Auditor, WindowCheck
from examples.harness.run import RunSettings, Summary, run_windows

__all__ = ["Application", "Auditor", "RunSettings", "Summary", "WindowCheck", "run_windows"]
