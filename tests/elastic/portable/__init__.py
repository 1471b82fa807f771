"""Tests of state that leaves its job."""
