"""Operators on Spark: nodes inside Spark tasks, the batch protocol between them, and the job that owns both."""
