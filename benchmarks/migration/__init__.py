"""Impact of a migration on a stream, in every mode and in Spark's own way: `make bench-migration`."""
