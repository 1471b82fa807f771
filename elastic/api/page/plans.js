// Plans of several strategies side by side, and the buttons that carry them out.

import { get, post } from "./api.js";
import { colourOf } from "./colours.js";
import { byId, html, svg } from "./dom.js";
import { bytes, plural, ranges, seconds, share } from "./format.js";

const STRATEGIES = {
  ssm: "moves the least state of all balanced assignments",
  even: "equal numbers of tasks per node, as in Storm",
  "consistent-hash": "hash ring with virtual nodes",
  mtm: "minimises the cost of expected future migrations too; needs a value table",
};
const MODES = ["auto", "progressive", "live", "warm", "suspend", "restart"];
const TRANSFERS = ["store", "direct"];

let job = null;
let nodes = [];
let edited = false; // whether the user has set the number of nodes

export const startPlans = (perform) => {
  for (const [name, description] of Object.entries(STRATEGIES)) {
    const box = html("input", { type: "checkbox", name: "strategy", value: name, checked: name !== "mtm" });
    byId("strategies").append(html("label", { class: "check", title: description }, box, name));
  }
  byId("mode").append(...MODES.map((mode) => html("option", { value: mode }, mode)));
  byId("transfer").append(...TRANSFERS.map((transfer) => html("option", { value: transfer }, transfer)));
  byId("strategies").addEventListener("change", () => {
    byId("value-label").hidden = !listStrategies().includes("mtm");
  });
  byId("what").addEventListener("change", () => {
    byId("what-nodes").hidden = byId("what").value !== "nodes";
    byId("what-remove").hidden = byId("what").value !== "remove";
  });
  const stepBy = (step) => () => {
    edited = true;
    byId("count").value = Math.max(1, Number(byId("count").value) + step);
  };
  byId("fewer").addEventListener("click", stepBy(-1));
  byId("more").addEventListener("click", stepBy(1));
  byId("count").addEventListener("input", () => (edited = true));
  byId("plan").addEventListener("submit", (event) => {
    event.preventDefault();
    perform(compare);
  });

  const compare = async () => {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(readTarget())) [value].flat().forEach((one) => query.append(name, one));
    listStrategies().forEach((strategy) => query.append("strategy", strategy));
    if (byId("value").value && listStrategies().includes("mtm")) query.append("value", byId("value").value);
    query.append("mode", byId("mode").value);
    const found = await get(`/jobs/${encodeURIComponent(job)}/plan?${query}`);
    drawPlans(found.plans, perform);
  };
};

export const updateNodes = (snapshot) => {
  if (job !== snapshot.job) byId("plans").replaceChildren();
  const names = [...new Set(snapshot.owners)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  if (job === snapshot.job && names.join() === nodes.join()) return;
  [job, nodes] = [snapshot.job, names];
  if (!edited) byId("count").value = nodes.length + 1;
  const boxes = nodes.map((node) =>
    html("label", { class: "check" }, html("input", { type: "checkbox", name: "remove", value: node }), node));
  byId("what-remove").replaceChildren(...boxes);
};

const listChecked = (name) => [...document.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);
const listStrategies = () => listChecked("strategy");

const readTarget = () => {
  const what = byId("what").value;
  const target = { tau: Number(byId("tau").value), relax: byId("relax").checked };
  if (what === "nodes") target.nodes = Number(byId("count").value);
  if (what === "remove") {
    target.remove = listChecked("remove");
    if (!target.remove.length) throw new Error("Select the nodes to remove.");
  }
  return target;
};

const drawPlans = (candidates, perform) => {
  const costs = candidates.filter((one) => one.plan).map((one) => one.plan.cost);
  const highest = Math.max(...costs, 1);
  const target = readTarget();
  const rebalance = byId("what").value === "rebalance";
  const best = candidates.find((one) => one.plan?.balanced && one.plan.cost === Math.min(...costs));
  byId("plans").replaceChildren(...candidates.map((candidate) => {
    const box = html("article", { class: candidate === best ? "candidate best" : "candidate", "data-strategy": candidate.strategy });
    const head = html("header", {}, html("h3", {}, candidate.strategy));
    box.append(head);
    if (candidate.problem) {
      box.append(html("p", { class: "bad note" }, candidate.problem.detail));
      return box;
    }
    const run = () => perform(async () => {
      const migration = await startMigration(candidate.strategy, target, rebalance);
      if (migration) byId("plans").replaceChildren(); // they are outdated now
      return migration;
    });
    const button = html("button", { type: "button", class: candidate === best ? "primary go" : "go", onclick: run },
      `${rebalance ? "Rebalance" : "Scale"} with ${candidate.strategy}`);
    head.append(drawVerdict(candidate.plan), html("span", { class: "grow" }), button);
    const what = plural(candidate.plan.moves.length, "task");
    box.append(drawTarget(candidate.plan), drawCost(what, candidate.plan, highest), drawExplanation(candidate));
    return box;
  }));
};

const drawVerdict = (plan) =>
  html("span", { class: plan.balanced ? "good note" : "bad note" }, plan.balanced ? "balanced" : "not balanced");

// Tasks that stay are pale, so that moves stand out.
const drawTarget = (plan) => {
  const root = svg("svg", { viewBox: `0 0 ${plan.target.tasks} 4`, preserveAspectRatio: "none", height: 18, role: "img" });
  const moving = new Set(plan.moves.map((move) => move.task));
  for (const node of plan.target.nodes) {
    for (const [start, stop] of node.runs) {
      for (let task = start; task < stop; task += 1) {
        const kind = moving.has(task) ? "" : "stays";
        root.append(svg("rect", { class: `cell ${colourOf(node.name)} ${kind}`, x: task, y: 0, width: 0.88, height: 4 },
          svg("title", {}, `task ${task}: ${node.name}${kind ? "" : ", moves there"}`)));
      }
    }
  }
  root.setAttribute("aria-label", plan.target.nodes.map((node) =>
    `${node.name}: ${ranges(node.runs.flatMap(([a, b]) => Array.from({ length: b - a }, (_, i) => a + i)))}`).join("; "));
  return root;
};

export const drawCost = (what, plan, highest) => {
  const fill = html("div", { class: "fill" });
  fill.style.width = `${(plan.cost / highest) * 100}%`;
  return html("div", { class: "cost" }, html("span", {}, `moves ${what}, ${bytes(plan.cost)}`),
    html("div", { class: "bar" }, fill), html("span", { class: "note" }, `${share(plan.cost_share)} of all state`));
};

const drawExplanation = ({ plan, milliseconds }) => {
  const parts = [
    `heaviest node ${plan.heaviest.node} at ${share(plan.heaviest.work / plan.cap)} of the cap ${seconds(plan.cap)}`,
    plan.joining.length ? `joining ${plan.joining.join(", ")}` : "",
    plan.leaving.length ? `leaving ${plan.leaving.join(", ")}` : "",
    plan.switches === null ? "" : `${plural(plan.switches, "task")} switch roles with a standby`,
    plan.background_cost === null ? "" : `${bytes(plan.background_cost)} copied in the background`,
    plan.reason,
    plan.note,
    `planned in ${milliseconds.toFixed(1)} ms`,
  ];
  return html("p", { class: "note" }, parts.filter(Boolean).join("; "));
};

const startMigration = (strategy, target, rebalance) => {
  const limit = byId("tasks-per-node").value;
  const body = {
    ...target,
    strategy,
    mode: byId("mode").value,
    transfer: byId("transfer").value,
    tasks_per_node: limit ? Number(limit) : null,
  };
  if (strategy === "mtm" && byId("value").value) body.value = byId("value").value;
  edited = false;
  return post(`/jobs/${encodeURIComponent(job)}/${rebalance ? "rebalance" : "scale"}`, body);
};
