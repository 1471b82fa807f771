// Plans to move tasks and to move keys side by side, and the button that moves keys.

import { get, post } from "./api.js";
import { colourOf } from "./colours.js";
import { byId, html } from "./dom.js";
import { bytes, percent, plural, share } from "./format.js";
import { drawCost } from "./plans.js";

let job = null;
let stages = "";

export const startBalance = (perform) => {
  byId("balance").addEventListener("submit", (event) => {
    event.preventDefault();
    perform(compareLevels);
  });
  byId("move-keys").addEventListener("click", () => perform(async () => {
    const migration = await post(`/jobs/${encodeURIComponent(job)}/rebalance`, { level: "keys", ...readOptions() });
    if (migration) byId("levels").replaceChildren(); // they are outdated now
    return migration;
  }));
};

export const updateStages = (snapshot) => {
  if (job !== snapshot.job) byId("levels").replaceChildren();
  job = snapshot.job;
  const names = snapshot.tables.map((table) => table.stage);
  if (names.join() === stages) return;
  stages = names.join();
  byId("stage").replaceChildren(...names.map((name) => html("option", { value: name }, name)));
  byId("stage-label").hidden = names.length < 2;
};

const readOptions = () => {
  const options = { theta: Number(byId("theta").value), most_entries: Number(byId("most-entries").value) };
  if (!byId("stage-label").hidden) options.stage = byId("stage").value;
  return options;
};

const compareLevels = async () => {
  const found = await get(`/jobs/${encodeURIComponent(job)}/balance?${new URLSearchParams(readOptions())}`);
  const highest = Math.max(...["tasks", "keys"].map((level) => found[level].plan?.cost ?? 0), 1);
  const boxes = ["tasks", "keys"].map((level) => drawLevel(level, found, highest));
  byId("levels").replaceChildren(...boxes, html("p", { class: "note why" }, `Level auto chooses ${found.reason}.`));
};

const drawLevel = (level, found, highest) => {
  const { plan, problem, overload } = found[level];
  const box = html("article", { class: found.level === level ? "candidate best" : "candidate", "data-level": level },
    html("header", {}, html("h3", {}, level === "tasks" ? "Move tasks" : "Move keys"), plan ? drawVerdict(overload, found.theta) : null));
  if (!plan) {
    box.append(html("p", { class: "bad note" }, problem.detail));
    return box;
  }
  const what = level === "tasks" ? plural(plan.moves.length, "task") : plural(plan.moves, "key");
  box.append(drawLoads(level, plan), drawCost(what, plan, highest), html("p", { class: "note" }, describe(level, plan)));
  if (level === "tasks" && plan.moves.length) box.append(html("p", { class: "note" }, "To carry it out, use Rebalance under Plan and scale."));
  return box;
};

const drawVerdict = (overload, theta) => {
  const balanced = overload <= theta + 1e-9;
  return html("span", { class: balanced ? "good note" : "bad note" },
    balanced ? "balanced" : `leaves one node ${percent(overload)} above the mean`);
};

// The work of every node after the plan, against the cap.
const drawLoads = (level, plan) => {
  const names = level === "tasks" ? plan.target.nodes.map((node) => node.name) : plan.nodes;
  const loads = level === "tasks" ? plan.loads : plan.loads_after;
  const widest = Math.max(plan.cap * 1.06, ...loads, 1e-9);
  const rows = names.map((name, index) => {
    const fill = html("div", { class: `fill ${colourOf(name)}` });
    fill.style.width = `${(loads[index] / widest) * 100}%`;
    const bar = html("div", { class: "bar", title: `${name}: ${share(loads[index] / plan.cap)} of the cap` }, fill, html("div", { class: "cap" }));
    bar.style.setProperty("--cap", `${(plan.cap / widest) * 100}%`);
    return bar;
  });
  return html("div", { class: "loads", role: "img", "aria-label":
    names.map((name, index) => `${name} ${share(loads[index] / plan.cap)} of the cap`).join("; ") }, ...rows);
};

const describe = (level, plan) => {
  const own = level === "tasks" ? []
    : [`heaviest node from ${percent(plan.theta_before)} to ${percent(plan.theta_reached)} above the mean`,
       `${plan.entries} of ${plan.most_entries} entries`, `no plan moves less than ${bytes(plan.lower_bound)}`,
       plan.overhead ? `${bytes(plan.overhead)} besides in the log` : ""];
  return [plan.reason, plan.note, ...own].filter(Boolean).join("; ");
};
