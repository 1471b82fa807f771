"""The parts of the demo that do not need Spark."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from examples.demo import proof as proof_module
from examples.demo import report
from examples.demo.memory import find_free_mb
from examples.demo.picture import draw
from examples.demo.proof import Proof, prove
from examples.demo.response_times import summarise
from examples.demo.source import ClockedNumbers, find_start
from examples.demo.steps import describe_heirs
from examples.demo.timeline import Period, Timeline
from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.board import Change
from examples.frequent_patterns.miner import count_patterns, find_maximal
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.texts import GeneratedTexts

MINING = Mining(threshold=3, window="2 batches")
PER_BATCH = 30


def timeline_of(*seconds: float) -> Timeline:
    """Batches every half second from 1,000 on, whose results took so long."""
    timeline = Timeline(every=0.5, began=1_000.0)
    timeline.published = [1_000 + 0.5 * batch + spent for batch, spent in enumerate(seconds)]
    timeline.changes = [Change(batch, {"storm": 4}, 0, 0) for batch in range(len(seconds))]
    return timeline


def true_changes(batches: int) -> list[Change]:
    """What a job without fault tells."""
    changes = []
    for batch in range(batches):
        first = max(0, batch - 1) * PER_BATCH
        counts = count_patterns(GeneratedTexts().take(np.arange(first, (batch + 1) * PER_BATCH)).to_pylist(), MINING)
        changes.append(Change(batch, find_maximal(counts, MINING.threshold), 0, 0))
    return changes


def shape_of(picture: Path) -> tuple[int, ...]:
    return tuple(imread(picture).shape)


def job_of(batches: int, *, lost: int = 0) -> Any:
    """A job that has applied these batches and lost the counts of some patterns."""
    texts = GeneratedTexts().take(np.arange((batches - 2) * PER_BATCH, batches * PER_BATCH)).to_pylist()
    rows = [{"pattern": " ".join(words), "texts": n} for words, n in count_patterns(texts, MINING).items()]
    kept = [*rows[lost:], {"pattern": "long gone", "texts": 0}]
    table = SimpleNamespace(collect=lambda: kept)
    return SimpleNamespace(
        status=lambda: SimpleNamespace(published_batch=batches - 1),
        state_table=lambda stage: {"detector": table}[stage],
    )


def test_numbers_arrive_at_a_fixed_rate_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5_000_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: now)
    reader = ClockedNumbers({"per_batch": "10", "every_us": "500000"}).streamReader(None)  # type: ignore[arg-type]
    offset = reader.initialOffset()
    seen = []
    for seconds in (0.0, 0.1, 0.5, 2.0, 2.0, 2.0, 2.0):
        now = 5_000_000_000_000 + round(seconds * 1e9)
        latest = reader.latestOffset(offset, None)  # type: ignore[arg-type]
        read = [batch for share in reader.partitions(offset, latest) for batch in reader.read(share)]
        seen.append([number for batch in read for number in batch.column("value").to_pylist()])
        offset = latest
    batches = [list(range(first, first + 10)) for first in range(0, 50, 10)]
    assert seen == [batches[0], [], *batches[1:], []]
    progress = {"sources": [{"endOffset": '{"batch": 4, "began_us": 5000000000}'}]}
    assert find_start(SimpleNamespace(lastProgress=progress)) == 5_000  # type: ignore[arg-type]
    assert find_start(SimpleNamespace(lastProgress=None)) is None  # type: ignore[arg-type]


def test_a_steady_step_has_the_batches_within_it_and_others_all_in_flight() -> None:
    timeline = timeline_of(0.2, 0.2, 0.9, 0.4, 0.2, 0.2)
    before, loss = Period("steady", "before", 1_000, 1_001.1), Period("loss", "loss", 1_001.1, 1_001.95)
    for period, worst in ((before, 200), (loss, 900)):
        found = summarise(timeline, period)
        assert found.maximum == pytest.approx(worst)
        assert found.batches == 2
    assert summarise(timeline, Period("loss", "later", 2_000, 2_001)).batches == 0


def test_a_proof_holds_for_exact_results_and_names_differences() -> None:
    progress: list[int] = []
    proof = prove(job_of(4), Audit(GeneratedTexts(), PER_BATCH, MINING), true_changes(4), progress.append, processes=2)
    assert proof.holds
    assert "each of 4 batches" in str(proof)
    assert progress == [1, 2, 3, 4]
    many = 2 * proof_module._CHUNK + 3  # more than one process gets
    assert prove(job_of(many), Audit(GeneratedTexts(), PER_BATCH, MINING), true_changes(many), progress.append, 1).holds
    wrong = true_changes(4)
    wrong[2] = Change(2, {**wrong[2].patterns, "no such": 3}, 0, 0)
    for job, changes, why in (
        (job_of(4), wrong, "batch 2: 1 unexpected: 'no such'"),
        (job_of(4, lost=1), true_changes(4), "final counts: 1 missing"),
        (job_of(5), true_changes(4), "5 batches were published, but 4 reported"),
    ):
        proof = prove(job, Audit(GeneratedTexts(), PER_BATCH, MINING), changes, lambda _: None, processes=1)
        assert not proof.holds
        assert why in str(proof)
    assert not Proof(0, 0, 0, []).holds


def test_the_report_is_self_contained_and_lists_the_steps(tmp_path: Path) -> None:
    timeline = timeline_of(0.2, 0.3, 0.9, 0.4)
    timeline.periods = [
        Period("warming", "warming up", 999, 1_000),
        Period("steady", "4 nodes", 1_000, 1_001),
        Period("scaling", "4 -> 6 nodes", 1_001, 1_002, "8 of 32 tasks <moved>"),
    ]
    timeline.note_owners(("node-1", "node-2"))
    timeline.owned = [owned._replace(moment=1_000.0) for owned in timeline.owned]
    picture = draw(timeline, tmp_path / "demo.png")
    page = report.write(timeline, Proof(4, 120, 9, []), picture, tmp_path / "report.html").read_text()
    assert not re.search(r"(src|href)=.?(https?:|//)", page)
    assert "4 -&gt; 6 nodes" in page
    assert "8 of 32 tasks &lt;moved&gt;" in page
    assert 'class="verdict exact"' in page
    assert "$" not in page
    assert "warming" not in page
    assert "standby on another node" not in page


def test_the_picture_has_a_panel_of_standbys_where_tasks_have_some(tmp_path: Path) -> None:
    timeline = timeline_of(0.2, 0.3, 0.9, 0.4)
    timeline.periods = [
        Period("warming", "warming up", 999, 1_000),
        Period("loss", "kill -9 of node-1", 1_000.5, 1_000.6, "node-2 (1) took over its tasks"),
        Period("switch", "roles switch back", 1_001.5, 1_002),
    ]
    timeline.note_owners(("node-1", "node-2"))
    without = shape_of(draw(timeline, tmp_path / "without.png"))
    timeline.note_owners(("node-1", "node-2"), (("node-2",), ()))
    timeline.note_owners(("node-1", "node-2"), (("node-2",), ()))  # nothing changed
    timeline.note_owners(("node-2", "node-2"), (("node-1",), ("node-3",)))  # roles switched
    timeline.owned = [owned._replace(moment=1_000.0 + place) for place, owned in enumerate(timeline.owned)]
    assert len(timeline.owned) == 3
    picture = draw(timeline, tmp_path / "demo.png")
    assert shape_of(picture)[0] > without[0]
    page = report.write(timeline, Proof(4, 120, 9, []), picture, tmp_path / "report.html").read_text()
    assert "standby on another node" in page
    assert "node-2 (1) took over its tasks" in page


def test_heirs_are_the_new_owners_of_lost_tasks() -> None:
    before = ("node-1", "node-2", "node-2", "node-2", "node-3")
    assert describe_heirs("node-2", before, before) == ""
    after = ("node-1", "node-1", "node-3", "node-3", "node-1")  # the last one moved for another reason
    assert describe_heirs("node-2", before, after) == "node-1 (1) and node-3 (2) took over its tasks"


def test_free_memory_is_what_the_system_says_is_available(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    3500000 kB\n")
    assert find_free_mb(meminfo) == 3_500
    assert find_free_mb(tmp_path / "none") > 1
