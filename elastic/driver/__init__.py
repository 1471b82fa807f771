"""The driver of a job: event loop, store executor and links to the nodes, which carry out what the core decides."""
