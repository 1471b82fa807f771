// Receives the server's events; every snapshot redraws every part of the page.

import { get } from "./api.js";
import { startBalance, updateStages } from "./balance.js";
import { byId, facts, html, setText } from "./dom.js";
import { count, milliseconds, percent } from "./format.js";
import { loadGraph } from "./graph.js";
import { loadJournal } from "./journal.js";
import { drawKeys, startKeys } from "./keys.js";
import { drawMigration } from "./migration.js";
import { drawNodes } from "./nodes.js";
import { updateNodes, startPlans } from "./plans.js";
import { addBands, addHistory, addSnapshot, reset, startResponse } from "./response.js";
import { drawStrip, startStrip } from "./strip.js";

const MESSAGE_MS = { done: 3000, problem: 12000 };

let newest = null;
let events = null;
let hiding = null;

const show = (text, kind) => {
  const box = byId("message");
  setText(box, text);
  box.dataset.kind = kind;
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (box.hidden = true), MESSAGE_MS[kind]);
};

// Runs an action of the user, and shows its result or its failure.
const perform = async (action) => {
  try {
    const result = await action();
    if (result?.number) show(`Migration ${result.number}: ${result.is_paused ? "pausing" : result.progress.phase}.`, "done");
  } catch (problem) {
    show(problem.message, "problem");
  }
};

const refreshJournal = () => loadJournal(newest.job).catch((problem) => show(problem.message, "problem"));

// The lag is that of batches published since the last snapshot.
const explainNoLag = (snapshot) =>
  snapshot.state !== "running" ? `the job has ${snapshot.state}` : snapshot.last_batch < 0 ? "no batch yet" : "no new batch";

const drawFigures = (snapshot) => {
  const response = snapshot.response;
  const nodes = new Set(snapshot.owners).size;
  byId("figures").replaceChildren(...facts([
    ["nodes", String(nodes), `epoch ${snapshot.epoch}`],
    ["rows per second", count(snapshot.rows_per_second), `${count(snapshot.rows)} total`],
    ["published batch", String(snapshot.published_batch), `of ${snapshot.last_batch}`],
    ["pending batches", String(snapshot.pending_batches), `of ${snapshot.max_pending_batches}`],
    ["apply lag", milliseconds(response.apply_lag_ms), response.apply_lag_ms === null ? explainNoLag(snapshot) : ""],
    ["busiest node", snapshot.imbalance === null ? "–" : percent(snapshot.imbalance), snapshot.imbalance === null ? "idle" : "above mean"],
    ["nodes lost", String(snapshot.losses), `${snapshot.recoveries} recovered`],
  ]));
};

const drawTop = (snapshot) => {
  setText(byId("state"), snapshot.state);
  byId("state").dataset.state = snapshot.state;
  const problems = byId("problems");
  problems.hidden = !snapshot.problems.length;
  setText(problems, snapshot.problems.join(" · "));
  const autoscaler = byId("autoscaler");
  autoscaler.hidden = !snapshot.autoscaler;
  if (snapshot.autoscaler) setText(autoscaler, `autoscaler (${snapshot.autoscaler.policy}): ${snapshot.autoscaler.reason}`);
};

// When this changes, the journal has a new record. The server reads it from the store, so it is not polled.
const journalKey = (snapshot) =>
  [snapshot?.job, snapshot?.migration?.number, snapshot?.migration?.is_over, snapshot?.autoscaler?.target].join();

const draw = (snapshot) => {
  const changed = journalKey(newest) !== journalKey(snapshot);
  newest = snapshot;
  drawTop(snapshot);
  drawFigures(snapshot);
  drawStrip(snapshot);
  drawNodes(snapshot);
  addSnapshot(snapshot);
  drawMigration(snapshot, perform);
  updateNodes(snapshot);
  updateStages(snapshot);
  drawKeys(snapshot);
  if (changed) refreshJournal();
};

const showConnection = (state) => {
  setText(byId("link"), state === "live" ? "live" : state === "lost" ? "connection lost, retrying" : "connecting");
  byId("link").dataset.state = state;
};

const follow = (job) => {
  events?.close();
  reset();
  const path = `/jobs/${encodeURIComponent(job)}`;
  loadGraph(job).catch((problem) => show(problem.message, "problem"));
  get(`${path}/migrations`).then((found) => addBands(found.migrations)).catch(() => {});
  events = new EventSource(`/api/v1${path}/events`);
  events.addEventListener("open", () => showConnection("live"));
  events.addEventListener("error", () => {
    showConnection("lost");
    // The browser reconnects a lost stream by itself, but not a refused one.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => follow(job), 2000);
  });
  events.addEventListener("history", (event) => addHistory(JSON.parse(event.data).responses));
  events.addEventListener("snapshot", (event) => draw(JSON.parse(event.data)));
};

const start = async () => {
  startPlans(perform);
  startBalance(perform);
  startKeys(perform, () => newest);
  startResponse();
  startStrip(() => newest);
  const jobs = await get("/jobs");
  byId("job").append(...jobs.map((job) => html("option", { value: job.name }, job.name)));
  byId("job").addEventListener("change", () => follow(byId("job").value));
  follow(jobs[0].name);
};

start().catch((problem) => show(problem.message, "problem"));
