"""Mining a stream whose keys are split over nodes (paper 001, section VI), checked against batch computations."""
