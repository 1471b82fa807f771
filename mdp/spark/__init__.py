"""The parts of this package that need Spark: jobs for `spark-submit`, and what they are made of."""
