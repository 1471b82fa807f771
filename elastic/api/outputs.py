"""What the API tells: the shapes of its answers, as its description shows them. Sizes are bytes, times as named."""

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
    state: str = Field(description="running, failed or stopped")
    tasks: int
    nodes: int
    operators: list[Operator]


class Unit(BaseModel):
    """One unit of state: what its node counted since it came."""

    slot: int
    rows: int
    seconds: float
    state_bytes: int


class Step(BaseModel):
    """A step that a node is taking now."""

    batch: int
    round: int
    tasks: list[int] = Field(description="the tasks that it is working on")
    seconds: float = Field(description="how long it has been running")
    overdue: bool = Field(description="for more than 30 s, and ten times as long as the longest of the latest hundred")


class Node(BaseModel):
    """One node as it said of itself last; without an address it is starting."""

    name: str
    serving: bool
    address: str
    pid: int
    loading: int = Field(description="units whose state is on its way")
    waiting_steps: int = Field(description="committed steps that it has not taken")
    staged_bytes: int
    units: list[Unit]
    step: Step | None = Field(description="the step that it is taking; null between two steps")


class Recovery(BaseModel):
    """A node that was lost and came back."""

    node: str
    reason: str
    seconds: float
    units: int
    replayed_rows: int


class Status(BaseModel):
    """A job at one moment. Batches up to last_batch count, up to published_batch their results are visible."""

    name: str
    state: str
    epoch: int
    last_batch: int
    published_batch: int
    saved_batch: int
    batches_ahead: int
    rows: int
    losses: int
    recoveries: list[Recovery]
    nodes: list[Node]
    sink_error: str | None = Field(description="why results no longer reach the sink")
    problems: list[str] = Field(description="what is wrong with a job that runs nevertheless")


class NodeRuns(BaseModel):
    """Runs [start, stop) of tasks."""

    name: str
    runs: list[tuple[int, int]]


class Assignment(BaseModel):
    """Which node owns which tasks, as committed last."""

    kind: str
    tasks: int
    nodes: list[NodeRuns]


class Load(BaseModel):
    """How busy the nodes were, and how much waits for them."""

    seconds: float
    utilisation: dict[str, float]
    mean_utilisation: float
    waiting_steps: dict[str, int]
    batches_ahead: float
    batches_allowed: int
    queue_growth: float


class Workload(BaseModel):
    """Work (seconds of the last minute) and state (bytes) of every task: what plans are made from."""

    work: list[float]
    state: list[float]


class Move(BaseModel):
    """A task that changes its owner."""

    task: int
    source: str
    target: str
    size: float


class Plan(BaseModel):
    """What moves where, what it costs, how balanced the result is, and why."""

    strategy: str
    current: Assignment
    target: Assignment
    joining: list[str]
    leaving: list[str]
    moves: list[Move]
    cost: float = Field(description="bytes of state that travel")
    cost_share: float
    total_state: float
    loads: list[float] = Field(description="work of the target's nodes, in their order")
    heaviest: dict[str, Any]
    tau: float
    cap: float
    balanced: bool
    relaxed: bool
    reason: str
    future_cost: float | None
    note: str = Field(description="an assumption about the workload, such as equal work; empty without one")


class Candidate(BaseModel):
    """One strategy's plan, or why it has none."""

    strategy: str
    plan: Plan | None = None
    problem: Problem | None = None
    milliseconds: float


class Comparison(BaseModel):
    """Several strategies side by side; nothing was changed."""

    plans: list[Candidate]


class Progress(BaseModel):
    """How far a migration is; seconds_left is an estimate, null before the first task arrives and during a pause."""

    phase: str
    tasks_done: int
    tasks: int
    bytes_done: float
    bytes: float
    stored_bytes: int
    direct_bytes: int
    seconds: float
    seconds_left: float | None
    waiting_for: list[str] = Field(description="which nodes have to do what before it can go on, and what they do now")
    overdue: bool = Field(description="whether one of these nodes takes a step far longer than usual")


class MovingTask(Move):
    """A move of a migration and how far it is: waiting, moving, moved or left out."""

    state: str


class Migration(BaseModel):
    """A migration that the API has seen, under way or over."""

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
    moves: list[MovingTask]


class Migrations(BaseModel):
    """Newest first; older ones are in the journal."""

    migrations: list[Migration]


class Story(BaseModel):
    """What happened in a migration, in order: what was heard, and what was decided."""

    total: int
    lines: list[str]


class JournalPage(BaseModel):
    """Records of the journal, newest first, each with its number."""

    total: int
    records: list[dict[str, Any]]
    before: int | None = Field(description="ask with before= this for older ones; null if there are none")


class Health(BaseModel):
    """Whether all jobs are well."""

    status: str = Field(description="ok, degraded or failing")
    jobs: dict[str, str] = Field(description="of each job: running, degraded, failed, stopped or unknown")
    problems: dict[str, list[str]] = Field(description="of each job that is degraded: what is wrong")


class Response(BaseModel):
    """How long batches took around one moment, in milliseconds; see docs/api.md for what is measured how."""

    id: int
    at_ms: int
    batch: int
    trigger_ms: float | None
    apply_lag_ms: float | None


class Responses(BaseModel):
    """The newest response times, oldest first."""

    responses: list[Response]


class SnapshotNode(BaseModel):
    """A node in few numbers; those of its tasks are added up."""

    name: str
    serving: bool
    tasks: int
    loading: int
    waiting_steps: int
    staged_bytes: int
    utilisation: float | None
    work: float
    state_bytes: float
    step: Step | None


class Mark(BaseModel):
    """Something that the page marks in its charts: a node was lost."""

    at_ms: int
    kind: str
    text: str


class Decision(BaseModel):
    """What the autoscaler makes of the load."""

    policy: str
    target: int
    reason: str


class Snapshot(BaseModel):
    """All that the page shows, made twice a second for all clients alike."""

    id: int
    at_ms: int
    job: str
    state: str
    epoch: int
    last_batch: int
    published_batch: int
    saved_batch: int
    batches_ahead: int
    batches_allowed: int
    rows: int
    rows_per_second: float
    losses: int
    recoveries: int
    nodes: list[SnapshotNode]
    owners: list[str] = Field(description="the owner of every task")
    work: list[float] = Field(description="of every task: seconds of the last minute")
    state_bytes: list[float] = Field(description="of every task")
    cap: float = Field(description="the most work a node may carry with tau = 0.2, or as the migration under way says")
    migration: Migration | None
    marks: list[Mark]
    response: Response
    autoscaler: Decision | None
    sink_error: str | None
    problems: list[str]
