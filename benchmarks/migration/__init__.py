"""What a stream notices of a migration, in every mode and next to Spark's own way: `make bench-migration`."""
