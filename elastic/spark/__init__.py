"""The engine on Spark: nodes in Spark tasks, a streaming DataFrame as the input, results and state as DataFrames."""
