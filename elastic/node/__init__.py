"""A node: one long-running Spark task that hosts units of state and applies committed steps to them."""
