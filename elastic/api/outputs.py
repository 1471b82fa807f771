"""The shapes of the API's responses, as its description shows them. Sizes are in bytes; names of times have units."""

from typing import Any

from pydantic import BaseModel, Field

from elastic.api.problems import Problem


class Operator(BaseModel):
    """One stage of a job's pipeline."""

    name: str
    key: list[str]
    grouping: str = Field(description="hash, table, partial:SPLITS or shuffle:SCHEDULER.")


class GraphNode(BaseModel):
    """An input, a stage, or the results of a stage, with its place in a picture of the graph."""

    kind: str = Field(description="One of input, stage and sink.")
    name: str = Field(description="Of a sink, the name of the stage whose results it holds.")
    label: str = Field(description="What a picture shows; of a sink its kind, and the end of its address.")
    column: int
    row: int


class Graph(BaseModel):
    """The inputs, the stages and the results of a job, and the flow of rows between them."""

    nodes: list[GraphNode]
    edges: list[tuple[int, int]] = Field(description="Pairs of positions in `nodes`.")


class JobSummary(BaseModel):
    """A job, its operators and its graph."""

    name: str
    state: str = Field(description="One of running, failed and stopped.")
    tasks: int
    nodes: int
    operators: list[Operator]
    graph: Graph


class Unit(BaseModel):
    """One unit of state, with the counters of its node since the unit was installed there."""

    stage: int
    task: int
    rows: int
    seconds: float
    state_bytes: int
    guests: bool = Field(False, description="Whether these are the keys that a table places beside the task.")


class Step(BaseModel):
    """The step that a node is applying."""

    batch: int
    round: int
    tasks: list[int] = Field(description="Tasks that the step is applied to.")
    seconds: float = Field(description="Running time of the step.")
    overdue: bool = Field(
        description="Whether it takes more than 30 s and ten times as long as the longest of the last 100 steps."
    )


class Node(BaseModel):
    """One node as of its last heartbeat; a node without an address is starting."""

    name: str
    serving: bool
    address: str
    pid: int
    loading: int = Field(description="Units whose state the node is loading.")
    pending_steps: int = Field(description="Committed steps that the node has not applied.")
    staged_bytes: int
    units: list[Unit]
    step: Step | None = Field(description="The current step; null between steps.")
    standbys: list[Unit] = Field(description="Units of other nodes that the node follows.")
    lag: int = Field(description="Published batches that some of the standbys have not taken.")


class Recovery(BaseModel):
    """A node that was lost and has recovered."""

    node: str
    reason: str
    seconds: float
    units: int
    replayed_rows: int


class Status(BaseModel):
    """A job at one moment. Batches up to last_batch are committed, those up to published_batch are published."""

    name: str
    state: str
    epoch: int
    last_batch: int
    published_batch: int
    saved_batch: int
    pending_batches: int
    rows: int
    losses: int
    recoveries: list[Recovery]
    nodes: list[Node]
    spares: int = Field(description="Processes that wait for the name of a node.")
    sink_error: str | None = Field(
        description="Why a sink failed, with its stage if there are several; null while they work."
    )
    problems: list[str] = Field(description="Problems of a running job.")


class NodeTasks(BaseModel):
    """A node and its tasks, as runs [start, stop)."""

    name: str
    runs: list[tuple[int, int]]


class Assignment(BaseModel):
    """The committed assignment of tasks to nodes."""

    kind: str
    tasks: int
    nodes: list[NodeTasks]


class Load(BaseModel):
    """Utilisation of the nodes and pending work."""

    seconds: float
    utilisation: dict[str, float]
    mean_utilisation: float
    pending_steps: dict[str, int]
    pending_batches: float
    max_pending_batches: int
    queue_growth: float


class Key(BaseModel):
    """One key in the last interval of its node."""

    name: str | None = Field(description="The key as text; null without the token, and for keys that are not named.")
    hash: str = Field(description="Hash of the key, a signed 64-bit integer; as text, because JavaScript rounds it.")
    stage: str
    task: int = Field(description="Task that has the key, or whose guest it is.")
    guest: bool = Field(description="Whether the key has an entry in the key table of its stage.")
    node: str
    home: str = Field(description="Node that the hash of the key leads to.")
    rows: int
    seconds: float = Field(description="Seconds of processing.")
    share: float = Field(description="Share of the work of the stage, from 0 to 1.")
    state_bytes: int


class Keys(BaseModel):
    """The heaviest keys of a job, heaviest first."""

    keys: list[Key]


class TaskGuests(BaseModel):
    """Number of keys of other tasks that a task hosts."""

    task: int
    keys: int


class KeyTable(BaseModel):
    """The key table of a stage that is grouped by table."""

    stage: str
    entries: int
    most_entries: int = Field(description="Maximum number of entries that a plan leaves, unless the request says else.")
    guests: list[TaskGuests] = Field(description="Tasks that host guests.")


class Workload(BaseModel):
    """Work (seconds in the last minute) and state (bytes) of every task, the input of a plan."""

    work: list[float]
    state: list[float]


class Move(BaseModel):
    """A task that changes its owner."""

    task: int
    source: str
    target: str
    size: float


class Plan(BaseModel):
    """The moves of a migration, their cost, and the balance that they lead to."""

    strategy: str
    current: Assignment
    target: Assignment
    joining: list[str]
    leaving: list[str]
    moves: list[Move]
    cost: float = Field(description="Bytes of state to move; moves to a standby that has caught up need none.")
    cost_share: float
    total_state: float
    loads: list[float] = Field(description="Work of the target's nodes, in their order.")
    heaviest: dict[str, Any]
    tau: float
    cap: float
    balanced: bool
    relaxed: bool
    reason: str
    future_cost: float | None
    switches: int | None = Field(description="Moves to a standby; null unless the mode is warm and there are standbys.")
    background_cost: float | None = Field(
        description="Bytes of state that are copied for standbys after the migration; null as for switches."
    )
    note: str = Field(description="An assumption about the workload, such as equal work; empty without one.")


class KeyPlan(BaseModel):
    """Keys that move between nodes, the cost of the moves, and the balance that they lead to."""

    strategy: str
    nodes: list[str]
    keys: int = Field(description="Keys that were measured one by one.")
    moves: int = Field(description="Keys that move.")
    entries: int = Field(description="Entries of the key table after the plan.")
    most_entries: int
    cost: float = Field(description="Bytes of state to move.")
    cost_share: float
    overhead: float = Field(description="Bytes that the moves take in the log besides this state.")
    total_state: float
    lower_bound: float
    theta: float
    theta_before: float = Field(description="Work of the heaviest node over the mean, less 1, before the plan.")
    theta_reached: float = Field(description="The same after the plan.")
    cap: float
    loads_before: list[float]
    loads_after: list[float]
    pinned: list[float] = Field(description="Work that no plan moves, by node; empty if there is none.")
    balanced: bool
    relaxed: bool
    reason: str
    note: str


class TaskLevel(BaseModel):
    """The plan to move tasks, or the problem that prevented it."""

    plan: Plan | None = None
    problem: Problem | None = None
    overload: float | None = Field(description="Work of the heaviest node over the mean, less 1, after the plan.")


class KeyLevel(BaseModel):
    """The plan to move keys, or the problem that prevented it."""

    plan: KeyPlan | None = None
    problem: Problem | None = None
    overload: float | None = Field(description="Work of the heaviest node over the mean, less 1, after the plan.")


class Balance(BaseModel):
    """The plans of both levels, and the level that a rebalance with level auto would choose."""

    level: str = Field(description="The level that is chosen: tasks or keys.")
    reason: str
    theta: float
    tasks: TaskLevel
    keys: KeyLevel


class Candidate(BaseModel):
    """The plan of one strategy, or the problem that prevented it."""

    strategy: str
    plan: Plan | None = None
    problem: Problem | None = None
    milliseconds: float


class Comparison(BaseModel):
    """Plans of several strategies."""

    plans: list[Candidate]


class Progress(BaseModel):
    """Progress of a migration; seconds_left is an estimate, null before the first move and during a pause."""

    phase: str
    tasks_done: int
    tasks: int
    keys_done: int
    keys: int
    bytes_done: float
    bytes: float
    stored_bytes: int
    direct_bytes: int
    seconds: float
    seconds_left: float | None
    waiting_for: list[str] = Field(
        description="What the migration waits for: which node has to do what, and what it does now."
    )
    overdue: bool = Field(description="Whether one of these nodes has an overdue step.")


class MigrationMove(Move):
    """A move of a migration and its state."""

    state: str = Field(description="One of waiting, moving, moved and skipped.")


class KeyMove(BaseModel):
    """A key that moves, by its hash, which is text because it has more digits than JavaScript's numbers."""

    hash: str
    source: str
    target: str
    size: float


class SplitKeys(BaseModel):
    """Which keys a partial stage splits from now on."""

    split: str = Field(description="One of all, head and none.")
    stage: str | None = Field(description="The operator of the request; null is the only one behind a partial stage.")


class Migration(BaseModel):
    """A migration since the server started, in progress or over."""

    number: int
    level: str = Field(description="What moves: tasks or keys.")
    mode: str
    transfer: str
    strategy: str
    nodes_before: int
    nodes_after: int
    began_ms: int
    ended_ms: int | None
    is_over: bool
    is_paused: bool
    error: str | None
    progress: Progress
    moves: list[MigrationMove] = Field(description="Moves of tasks.")
    key_moves: list[KeyMove] = Field(description="The largest moves of keys.")


class Migrations(BaseModel):
    """Migrations, newest first; older ones are in the journal."""

    migrations: list[Migration]


class Story(BaseModel):
    """Events and decisions of a migration, in order."""

    total: int
    lines: list[str]


class JournalPage(BaseModel):
    """Records of the journal with their numbers, newest first."""

    total: int
    records: list[dict[str, Any]]
    before: int | None = Field(description="Value of the parameter before for the next page; null on the last page.")


class Health(BaseModel):
    """Health of all jobs."""

    status: str = Field(description="One of ok, degraded and failing.")
    jobs: dict[str, str] = Field(description="State by job: running, degraded, failed, stopped or unknown.")
    problems: dict[str, list[str]] = Field(description="Problems by job, for degraded jobs.")


class Response(BaseModel):
    """Response times at one moment, in milliseconds; docs/api.md says how they are measured."""

    id: int
    at_ms: int
    batch: int
    trigger_ms: float | None
    apply_lag_ms: float | None


class Responses(BaseModel):
    """Response times, oldest first."""

    responses: list[Response]


class SnapshotNode(BaseModel):
    """A node, with totals over its tasks."""

    name: str
    serving: bool
    tasks: int
    loading: int
    pending_steps: int
    staged_bytes: int
    utilisation: float | None
    work: float
    state_bytes: float
    step: Step | None
    standbys: int
    lag: int


class Mark(BaseModel):
    """An event that the page marks in its chart, such as a lost node."""

    at_ms: int
    kind: str
    text: str


class Decision(BaseModel):
    """The newest decision of the autoscaler."""

    policy: str
    target: int
    reason: str


class Snapshot(BaseModel):
    """All data of the page, taken twice a second for all clients."""

    id: int
    at_ms: int
    job: str
    state: str
    epoch: int
    last_batch: int
    published_batch: int
    saved_batch: int
    pending_batches: int
    max_pending_batches: int
    rows: int
    rows_per_second: float
    losses: int
    recoveries: int
    nodes: list[SnapshotNode]
    spares: int
    owners: list[str] = Field(description="Owner of every task.")
    work: list[float] = Field(description="Work of every task: seconds in the last minute.")
    state_bytes: list[float] = Field(description="State size of every task.")
    cap: float = Field(description="Maximum work per node at the default tau, or of the plan in progress.")
    imbalance: float | None = Field(
        description="Busy time of the busiest node in the last 10 s over the mean, less 1; null while all are idle."
    )
    tables: list[KeyTable] = Field(description="Key tables of the stages that are grouped by table.")
    keys: list[Key] | None = Field(description="The heaviest keys, without their names; null if keys are not counted.")
    migration: Migration | None
    marks: list[Mark]
    response: Response
    autoscaler: Decision | None
    sink_error: str | None
    problems: list[str]
