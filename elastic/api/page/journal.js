// The journal: migrations and autoscaling decisions of the job.

import { get } from "./api.js";
import { byId, html } from "./dom.js";
import { bytes, change, day, percent, plural, seconds, share } from "./format.js";

const PAGE = 25;

const moved = (critical, background) =>
  `${bytes(critical)}${background ? `, ${bytes(background)} in the background` : ""}`;

const DESCRIPTIONS = {
  began: (record) => {
    const counts = { nodes_before: record.plan.current.nodes.length, nodes_after: record.plan.target.nodes.length };
    const moves = `${plural(record.plan.moves.length, "task")}, ${moved(record.plan.cost, record.plan.background_cost)}`;
    return `${change(counts)} by ${record.plan.strategy}, ${record.mode}, ${record.transfer}: moves ${moves}`;
  },
  ended: (record) =>
    `${record.outcome} after ${seconds(record.seconds)}: ${change(record)} by ${record.strategy}, ${record.mode}, ` +
    `${plural(record.tasks_moved, "task")}, ${moved(record.state_bytes, record.background_bytes)}` +
    `${record.error ? `: ${record.error}` : ""}`,
  "keys began": (record) =>
    `moves ${plural(record.keys, "key")}, ${bytes(record.state_bytes)}, by ${record.strategy}: heaviest node from ` +
    `${percent(record.overload_before)} to ${percent(record.overload_after)} above the mean, ${plural(record.entries, "table entry", "table entries")}`,
  "keys ended": (record) =>
    `${record.outcome} after ${seconds(record.seconds)}: ${plural(record.keys_moved, "key")} by ${record.strategy}, ` +
    `${bytes(record.state_bytes)}${record.error ? `: ${record.error}` : ""}`,
  decided: (record) => `${record.nodes} → ${record.target} nodes: ${record.reason}`,
  refused: (record) => `${record.nodes} → ${record.target} nodes: ${record.error}`,
  recommended: (record) => `${record.nodes} → ${record.target} nodes: ${record.reason} (${share(record.mean_utilisation)} busy)`,
};

let records = [];
let older = null;
let job = null; // requested
let shownJob = null;

export const loadJournal = async (name) => {
  job = name;
  const page = await get(`/jobs/${encodeURIComponent(name)}/journal?limit=${PAGE}`);
  const same = shownJob === name && records[0]?.number === page.records[0]?.number && records.length;
  if (job !== name || same) return; // older pages that the user has opened stay open
  [records, older, shownJob] = [page.records, page.before, name];
  draw();
};

const loadOlder = async () => {
  const page = await get(`/jobs/${encodeURIComponent(job)}/journal?limit=${PAGE}&before=${older}`);
  records.push(...page.records);
  older = page.before;
  draw();
};

const draw = () => {
  if (!records.length) {
    byId("journal").replaceChildren(html("p", { class: "note" }, "No records yet."));
    return;
  }
  const rows = records.map((record) =>
    html("tr", { "data-kind": record.kind },
      html("td", {}, record.number), html("td", { class: "when" }, day(record.at_ms)), html("td", {}, record.kind),
      html("td", {}, DESCRIPTIONS[record.kind]?.(record) ?? record.error ?? "")));
  const head = html("tr", {}, ...["", "time", "event", ""].map((title) => html("th", { scope: "col" }, title)));
  const table = html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows));
  const more = older ? html("button", { type: "button", id: "older", class: "quiet", onclick: loadOlder }, "Older") : null;
  byId("journal").replaceChildren(html("div", { class: "scroll", tabindex: 0 }, table), more ?? "");
};
