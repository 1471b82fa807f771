"""The queries of Nexmark on this engine and on Spark's own streaming, with equal answers."""
