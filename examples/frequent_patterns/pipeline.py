"""The pipeline of four operators (paper 003, Figure 8), each with its key."""

from elastic.operators import Stage
from examples.frequent_patterns.detector import Detector
from examples.frequent_patterns.generator import PatternGenerator
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.reporter import Reporter
from examples.frequent_patterns.window import TEXT, SlidingWindow

WINDOW, GENERATOR, DETECTOR, REPORTER = "window", "generator", "detector", "reporter"


def stages(mining: Mining, time: str | None = None) -> list[Stage]:
    """Return the stages: texts are keyed by their words; detector and reporter by the pattern, so on the same node."""
    return [
        Stage(SlidingWindow(mining, time), key=TEXT, name=WINDOW),
        Stage(PatternGenerator(mining.length), key="words", name=GENERATOR),
        Stage(Detector(mining), key="pattern", name=DETECTOR),
        Stage(Reporter(mining), key="pattern", name=REPORTER),
    ]
