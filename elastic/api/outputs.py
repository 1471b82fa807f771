"""The shapes of the API's responses, as its description shows them. Sizes are in bytes; names of times have units."""

from typing import Any

from pydantic import BaseModel, Field

from elastic.api.problems import Problem


class Operator(BaseModel):
    """One stage of a job's pipeline."""

    name: str
    key: list[str]


class JobSummary(BaseModel):
    """A job and its operators."""

    name: str
    state: str = Field(description="One of running, failed and stopped.")
    tasks: int
    nodes: int
    operators: list[Operator]


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
    sink_error: str | None = Field(description="Why the sink failed; null while it works.")
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
    cost: float = Field(description="Bytes of state to move.")
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
    note: str = Field(description="An assumption about the workload, such as equal work; empty without one.")


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


class Migration(BaseModel):
    """A migration since the server started, in progress or over."""

    number: int
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
    moves: list[MigrationMove]


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
    owners: list[str] = Field(description="Owner of every task.")
    work: list[float] = Field(description="Work of every task: seconds in the last minute.")
    state_bytes: list[float] = Field(description="State size of every task.")
    cap: float = Field(description="Maximum work per node at the default tau, or of the plan in progress.")
    migration: Migration | None
    marks: list[Mark]
    response: Response
    autoscaler: Decision | None
    sink_error: str | None
    problems: list[str]
