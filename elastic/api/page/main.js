// From the server's events to the page: every snapshot draws every part.

import { get } from "./api.js";
import { byId, facts, html, say } from "./dom.js";
import { count, milliseconds } from "./format.js";
import { loadJournal } from "./journal.js";
import { drawMigration } from "./migration.js";
import { drawNodes } from "./nodes.js";
import { knowNodes, startPlans } from "./plans.js";
import { addBands, addHistory, addSnapshot, forget, startResponse } from "./response.js";
import { drawStrip, startStrip } from "./strip.js";

const MESSAGE_MS = { done: 3000, problem: 12000 };

let newest = null;
let events = null;
let hiding = null;

const show = (text, kind) => {
  const box = byId("message");
  say(box, text);
  box.dataset.kind = kind;
  box.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (box.hidden = true), MESSAGE_MS[kind]);
};

// What a reader asks for; a failure is told.
const act = async (ask) => {
  try {
    const answer = await ask();
    if (answer?.number) show(`Migration ${answer.number}: ${answer.is_paused ? "pausing" : answer.progress.phase}.`, "done");
  } catch (problem) {
    show(problem.message, "problem");
  }
};

const refreshJournal = () => loadJournal(newest.job).catch((problem) => show(problem.message, "problem"));

// The lag is that of batches whose results became visible since the last snapshot.
const whyNoLag = (snapshot) =>
  snapshot.state !== "running" ? `the job has ${snapshot.state}` : snapshot.last_batch < 0 ? "no batch yet" : "no batch just now";

const drawFigures = (snapshot) => {
  const response = snapshot.response;
  const working = new Set(snapshot.owners).size;
  byId("figures").replaceChildren(...facts([
    ["nodes", String(working), `epoch ${snapshot.epoch}`],
    ["rows a second", count(snapshot.rows_per_second), `${count(snapshot.rows)} in all`],
    ["published batch", String(snapshot.published_batch), `of ${snapshot.last_batch}`],
    ["batches ahead", String(snapshot.batches_ahead), `of ${snapshot.batches_allowed}`],
    ["apply lag", milliseconds(response.apply_lag_ms), response.apply_lag_ms === null ? whyNoLag(snapshot) : ""],
    ["nodes lost", String(snapshot.losses), `${snapshot.recoveries} came back`],
  ]));
};

const drawTop = (snapshot) => {
  say(byId("state"), snapshot.state);
  byId("state").dataset.state = snapshot.state;
  const problems = byId("problems");
  problems.hidden = !snapshot.problems.length;
  say(problems, snapshot.problems.join(" · "));
  const autoscaler = byId("autoscaler");
  autoscaler.hidden = !snapshot.autoscaler;
  if (snapshot.autoscaler) say(autoscaler, `autoscaled (${snapshot.autoscaler.policy}): ${snapshot.autoscaler.reason}`);
};

// When this changes, the journal has a new record: it is read from the store, and not asked for without need.
const decisions = (snapshot) =>
  [snapshot?.job, snapshot?.migration?.number, snapshot?.migration?.is_over, snapshot?.autoscaler?.target].join();

const draw = (snapshot) => {
  const decided = decisions(newest) !== decisions(snapshot);
  newest = snapshot;
  drawTop(snapshot);
  drawFigures(snapshot);
  drawStrip(snapshot);
  drawNodes(snapshot);
  addSnapshot(snapshot);
  drawMigration(snapshot, act);
  knowNodes(snapshot);
  if (decided) refreshJournal();
};

const link = (state) => {
  say(byId("link"), state === "live" ? "live" : state === "lost" ? "server lost, trying again" : "connecting");
  byId("link").dataset.state = state;
};

const follow = (job) => {
  events?.close();
  forget();
  const path = `/jobs/${encodeURIComponent(job)}`;
  get(`${path}/migrations`).then((found) => addBands(found.migrations)).catch(() => {});
  events = new EventSource(`/api/v1${path}/events`);
  events.addEventListener("open", () => link("live"));
  events.addEventListener("error", () => {
    link("lost");
    // A refused stream is closed for good; a lost one is opened again by the browser itself.
    if (events.readyState === EventSource.CLOSED) setTimeout(() => follow(job), 2000);
  });
  events.addEventListener("history", (event) => addHistory(JSON.parse(event.data).responses));
  events.addEventListener("snapshot", (event) => draw(JSON.parse(event.data)));
};

const start = async () => {
  startPlans(act);
  startResponse();
  startStrip(() => newest);
  const jobs = await get("/jobs");
  byId("job").append(...jobs.map((job) => html("option", { value: job.name }, job.name)));
  byId("job").addEventListener("change", () => follow(byId("job").value));
  follow(jobs[0].name);
};

start().catch((problem) => show(problem.message, "problem"));
