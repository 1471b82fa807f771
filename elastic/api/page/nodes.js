// Work and state of every node, against the cap of a balanced assignment.

import { colourOf } from "./colours.js";
import { byId, html, setText } from "./dom.js";
import { bytes, plural, seconds, share } from "./format.js";

const LONG_STEP_SECONDS = 5; // shorter ones change too quickly to be read

const TITLES = [
  ["", ""],
  ["work in the last minute", ""],
  ["", ""],
  ["state", "detail"],
  ["", "detail"],
  ["busy", "detail"],
  ["standbys", "detail standbys"],
];

let rows = new Map();

export const drawNodes = (snapshot) => {
  const box = byId("nodes");
  const names = snapshot.nodes.map((node) => node.name);
  if (names.join() !== [...rows.keys()].join()) {
    rows = new Map(names.map((name) => [name, row(name)]));
    const titles = TITLES.map(([title, kind]) => html("span", { class: `title ${kind}` }, title));
    box.replaceChildren(...titles, ...[...rows.values()].flatMap((one) => one.elements));
  }
  box.classList.toggle("followed", snapshot.nodes.some((node) => node.standbys));
  const cap = snapshot.cap;
  const widest = Math.max(cap * 1.12, ...snapshot.nodes.map((node) => node.work), 1e-9);
  const largest = Math.max(...snapshot.nodes.map((node) => node.state_bytes), 1);
  setText(byId("cap"), `${seconds(cap)} of work, the maximum per node of a balanced assignment.`);
  for (const node of snapshot.nodes) update(rows.get(node.name), node, cap, widest, largest, describeAbsence(snapshot));
};

// The label of a node that is not serving; in a job that has ended, no node is starting.
export const describeAbsence = (snapshot) => (snapshot.state === "running" ? "starting" : snapshot.state);

const row = (name) => {
  const bar = (kind) => {
    const fill = html("div", { class: `fill ${colourOf(name)}` });
    const cap = kind === "work" ? html("div", { class: "cap" }) : null;
    const detail = kind === "state" ? "detail" : "";
    const box = html("div", { class: `bar ${kind} ${detail}` }, fill, cap);
    return { box, fill, value: html("span", { class: `value ${detail}` }) };
  };
  const label = html("span", { class: `swatch ${colourOf(name)}` }, name);
  const busy = html("span", { class: "busy detail" });
  const standbys = html("span", { class: "value detail standbys" });
  const [work, state] = [bar("work"), bar("state")];
  const elements = [label, work.box, work.value, state.box, state.value, busy, standbys];
  return { label, work, state, busy, standbys, elements };
};

const update = ({ work, state, busy, standbys }, node, cap, widest, largest, absence) => {
  const over = node.work > cap * (1 + 1e-9);
  work.value.dataset.over = over;
  work.box.style.setProperty("--cap", `${(cap / widest) * 100}%`);
  work.fill.style.width = `${(node.work / widest) * 100}%`;
  setText(work.value, (over ? "▲ " : "") + seconds(node.work));
  work.value.title = over ? "above the cap" : "";
  state.fill.style.width = `${(node.state_bytes / largest) * 100}%`;
  setText(state.value, bytes(node.state_bytes));
  const step = node.step;
  const long = step && (step.overdue || step.seconds >= LONG_STEP_SECONDS);
  setText(busy, node.serving ? share(node.utilisation) + (long ? `, current step ${seconds(step.seconds)}` : "") : absence);
  busy.dataset.overdue = Boolean(step?.overdue);
  const details = step ? `batch ${step.batch}, round ${step.round}, tasks ${step.tasks.join(", ")}` : "";
  busy.title = [node.pending_steps ? `${node.pending_steps} pending steps` : "", details].filter(Boolean).join("; ");
  setText(standbys, node.standbys ? `${node.standbys}${node.lag ? `, ${node.lag} behind` : ""}` : "–");
  standbys.title = node.standbys
    ? `follows ${plural(node.standbys, "unit")} of other nodes; ${plural(node.lag, "published batch", "published batches")} behind`
    : "follows no other node";
};
