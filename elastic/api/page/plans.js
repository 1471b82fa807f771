// Plans of several strategies side by side, and the button that carries one out.

import { get, post } from "./api.js";
import { colourOf } from "./colours.js";
import { byId, html, svg } from "./dom.js";
import { bytes, plural, ranges, seconds, share } from "./format.js";

const STRATEGIES = {
  ssm: "the least state that any balanced assignment moves",
  even: "equal numbers of tasks, as Storm does",
  "consistent-hash": "the usual ring with virtual nodes",
  mtm: "with foresight; needs a value table",
};
const MODES = ["progressive", "live", "suspend", "restart"];
const TRANSFERS = ["store", "direct"];

let job = null;
let nodes = [];
let touched = false; // whether the reader has chosen a number

export const startPlans = (act) => {
  for (const [name, why] of Object.entries(STRATEGIES)) {
    const box = html("input", { type: "checkbox", name: "strategy", value: name, checked: name !== "mtm" });
    byId("strategies").append(html("label", { class: "check", title: why }, box, name));
  }
  byId("mode").append(...MODES.map((mode) => html("option", { value: mode }, mode)));
  byId("transfer").append(...TRANSFERS.map((transfer) => html("option", { value: transfer }, transfer)));
  byId("strategies").addEventListener("change", () => {
    byId("value-label").hidden = !chosen().includes("mtm");
  });
  byId("what").addEventListener("change", () => {
    byId("what-nodes").hidden = byId("what").value !== "nodes";
    byId("what-remove").hidden = byId("what").value !== "remove";
  });
  const stepBy = (step) => () => {
    touched = true;
    byId("count").value = Math.max(1, Number(byId("count").value) + step);
  };
  byId("fewer").addEventListener("click", stepBy(-1));
  byId("more").addEventListener("click", stepBy(1));
  byId("count").addEventListener("input", () => (touched = true));
  byId("plan").addEventListener("submit", (event) => {
    event.preventDefault();
    act(compare);
  });

  const compare = async () => {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(asked())) [value].flat().forEach((one) => query.append(name, one));
    chosen().forEach((strategy) => query.append("strategy", strategy));
    if (byId("value").value && chosen().includes("mtm")) query.append("value", byId("value").value);
    const found = await get(`/jobs/${encodeURIComponent(job)}/plan?${query}`);
    drawPlans(found.plans, act);
  };
};

export const knowNodes = (snapshot) => {
  if (job !== snapshot.job) byId("plans").replaceChildren();
  const names = [...new Set(snapshot.owners)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  if (job === snapshot.job && names.join() === nodes.join()) return;
  [job, nodes] = [snapshot.job, names];
  if (!touched) byId("count").value = nodes.length + 1;
  const boxes = nodes.map((node) =>
    html("label", { class: "check" }, html("input", { type: "checkbox", name: "remove", value: node }), node));
  byId("what-remove").replaceChildren(...boxes);
};

const checked = (name) => [...document.querySelectorAll(`input[name=${name}]:checked`)].map((box) => box.value);
const chosen = () => checked("strategy");

const asked = () => {
  const what = byId("what").value;
  const wanted = { tau: Number(byId("tau").value), relax: byId("relax").checked };
  if (what === "nodes") wanted.nodes = Number(byId("count").value);
  if (what === "remove") {
    wanted.remove = checked("remove");
    if (!wanted.remove.length) throw new Error("Choose the nodes that should leave.");
  }
  return wanted;
};

const drawPlans = (candidates, act) => {
  const costs = candidates.filter((one) => one.plan).map((one) => one.plan.cost);
  const most = Math.max(...costs, 1);
  const wanted = asked();
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
    const run = () => act(async () => {
      const begun = await carryOut(candidate.strategy, wanted, rebalance);
      if (begun) byId("plans").replaceChildren(); // they were made for what was before
      return begun;
    });
    const button = html("button", { type: "button", class: candidate === best ? "primary go" : "go", onclick: run },
      `${rebalance ? "Rebalance" : "Scale"} with ${candidate.strategy}`);
    head.append(verdict(candidate.plan), html("span", { class: "grow" }), button);
    box.append(target(candidate.plan), cost(candidate.plan, most), explained(candidate));
    return box;
  }));
};

const verdict = (plan) =>
  html("span", { class: plan.balanced ? "good note" : "bad note" }, plan.balanced ? "balanced" : "not balanced");

// Tasks that stay are pale: what moves stands out.
const target = (plan) => {
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

const cost = (plan, most) => {
  const fill = html("div", { class: "fill" });
  fill.style.width = `${(plan.cost / most) * 100}%`;
  return html("div", { class: "cost" }, html("span", {}, `moves ${plural(plan.moves.length, "task")}, ${bytes(plan.cost)}`),
    html("div", { class: "bar" }, fill), html("span", { class: "note" }, `${share(plan.cost_share)} of all state`));
};

const explained = ({ plan, milliseconds }) => {
  const told = [
    `heaviest ${plan.heaviest.node} with ${share(plan.heaviest.work / plan.cap)} of the cap ${seconds(plan.cap)}`,
    plan.joining.length ? `joining ${plan.joining.join(", ")}` : "",
    plan.leaving.length ? `leaving ${plan.leaving.join(", ")}` : "",
    plan.reason,
    plan.note,
    `planned in ${milliseconds.toFixed(1)} ms`,
  ];
  return html("p", { class: "note" }, told.filter(Boolean).join("; "));
};

const carryOut = (strategy, wanted, rebalance) => {
  const bound = byId("tasks-per-node").value;
  const body = {
    ...wanted,
    strategy,
    mode: byId("mode").value,
    transfer: byId("transfer").value,
    tasks_per_node: bound ? Number(bound) : null,
  };
  if (strategy === "mtm" && byId("value").value) body.value = byId("value").value;
  touched = false;
  return post(`/jobs/${encodeURIComponent(job)}/${rebalance ? "rebalance" : "scale"}`, body);
};
