"""The experiments of paper 002 by name."""

from collections.abc import Mapping

from elastic.experiments.paper002 import skewness, sweeps
from elastic.experiments.paper002.charts import draw_skewness, draw_sweep
from elastic.experiments.paper002.lab import Lab
from elastic.experiments.results import Experiment

EXPERIMENTS: Mapping[str, Experiment[Lab]] = {
    "figure7": Experiment(
        "Loads of nodes by hash alone, without standbys and with one for every key",
        skewness.measure,
        skewness.format_rows,
        draw_skewness,
        note="Standbys that work as much as their keys take 35 to 48 % off the heaviest node's excess.",
    ),
    "figure8": Experiment(
        "Time and migration cost of a plan, against theta",
        sweeps.measure_by_theta,
        sweeps.format_rows,
        draw_sweep("Switching roles first leaves little to move", "allowed overload theta"),
        note=(
            "Reproduced in kind: FTLB moves less than Mixed, by 1 to 16 % here. It switches roles only where a key "
            "happens to be placed on its standby. Readj takes the longest; that Mixed takes longer than FTLB is not "
            "reproduced."
        ),
    ),
    "figure9": Experiment(
        "Time and migration cost of a plan, against the number of keys",
        sweeps.measure_by_keys,
        sweeps.format_rows,
        draw_sweep("Time grows with the number of keys", "keys K", logarithmic=True),
        note=(
            "With 1,000,000 keys half of the plans or more exceed the table of 3,000 entries under every strategy: "
            "their costs do not compare."
        ),
    ),
    "nodes": Experiment(
        "Time and migration cost of a plan, against the number of nodes",
        sweeps.measure_by_nodes,
        sweeps.format_rows,
        draw_sweep("More nodes share the standbys of one", "nodes N"),
    ),
    "fluctuation": Experiment(
        "Time and migration cost of a plan, against the fluctuation",
        sweeps.measure_by_fluctuation,
        sweeps.format_rows,
        draw_sweep("Larger fluctuations move more state", "fluctuation f"),
    ),
    "share": Experiment(
        "Time and migration cost of a plan, against the work of a standby",
        sweeps.measure_by_share,
        sweeps.format_rows,
        draw_sweep("A standby that works as its key does is no relief", "work of a standby, as a share of its key's"),
        note="A switch takes only 1 - share of a key's work off a node; from 0.7 on little is gained.",
    ),
    "standbys": Experiment(
        "Time and migration cost of a plan, against the number of standbys of a key",
        sweeps.measure_by_count,
        sweeps.format_rows,
        draw_sweep("The more standbys, the more often a key meets one", "standbys of a key"),
        note="With standbys that work nothing. The more nodes hold one, the more often FTLB places a key on one.",
    ),
    "service-level": Experiment(
        "Time and migration cost of a plan, against the share of keys that have a standby",
        sweeps.measure_by_service_level,
        sweeps.format_rows,
        draw_sweep("Fewer standbys, fewer switches", "share of keys with a standby"),
    ),
    "second-hash": Experiment(
        "Migration cost with a second hash, and with standbys on the next node",
        sweeps.measure_by_hash,
        sweeps.format_rows,
        draw_sweep("Standbys on the next node are no way out", "0: second hash, 1: node (k + 1) mod n"),
        note="The paper's example of a second hash is (k + 1) mod n: all of a node's keys have one way out then.",
    ),
}
