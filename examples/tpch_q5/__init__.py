"""TPC-H query 5 as a continuous query over a sliding window: the third application of paper 000."""
