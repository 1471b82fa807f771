"""The parts of this package that need Spark: jobs for `spark-submit`, and their building blocks."""
