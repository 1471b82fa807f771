"""Sliding-window maximal frequent patterns over short texts (paper 003, section 6, Figure 8)."""
