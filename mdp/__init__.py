"""Learning which migrations are likely and what they will cost: arrives with the decision process."""
