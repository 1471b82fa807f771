"""A seeded world around the real shells of a job: driver, nodes, ingest, sinks and control, in simulated threads."""
