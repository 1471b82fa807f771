"""Names and defaults of other packages, written down again: help and completion need them at once, without a compiler.

A test compares them with what they are copies of.
"""

STRATEGIES = ("ssm", "mtm", "even", "consistent-hash")  # migration.STRATEGIES
MODES = ("progressive", "live", "suspend", "restart")  # elastic.control.MODES
TRANSFERS = ("store", "direct")  # elastic.control.TRANSFERS
METHODS = ("auto", "exact", "approximate")  # mdp.projecting.METHODS
EXPERIMENTS = ("figure9", "figure10", "figure11", "figure12", "figure14", "quality")  # mdp.experiments.EXPERIMENTS

TAU = 0.2  # mdp.process.DEFAULT_TAU, and that of a scale request
RELAX = True  # elastic.control.ScaleRequest.relax
GAMMA = 0.8  # mdp.process.DEFAULT_GAMMA
ERROR = 0.002  # mdp.exact.DEFAULT_ERROR
MOST_PARTITIONS = 6_000_000  # mdp.projecting.MOST_PARTITIONS
