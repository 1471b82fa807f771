"""Counts the words of a text whose hot words change, and compares every window with a batch computation.

python -m examples.skewed_words --local                  # in threads of this process
python -m examples.skewed_words --nodes 4 --scale 6@10   # on a local Spark, scaled after 10 s
"""

from pathlib import Path

import click

from examples.frequent_patterns.texts import make_vocabulary
from examples.harness.command import run_command
from examples.harness.options import StreamOptions, stream_options
from examples.skewed_words.application import SkewedWords
from examples.workloads import FileTexts, SkewedTexts, TextBatches, read_texts

_TEXT_WORDS = 8  # of a text in a file, roughly: the rate is one of words


@click.command()
@click.option("--words", default=10_000, show_default=True, type=click.IntRange(1), help="Different generated words.")
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of texts, one per line, or a CSV file with a column text; generated if not given.",
)
@stream_options
def main(options: StreamOptions, words: int, texts: Path | None) -> None:
    """Count words in tumbling windows of one interval, and compare every window with a batch computation."""
    pace = options.pace
    source: TextBatches = SkewedTexts(options.key_stream(make_vocabulary(words)), pace)
    if texts is not None:
        source = FileTexts(read_texts(texts), max(1, pace.rows_per_batch // _TEXT_WORDS))
    run_command(SkewedWords(source, pace, options.cost_microseconds), options)


if __name__ == "__main__":
    main()
