// The current or last migration: its progress, and the buttons that control it.

import { get, post } from "./api.js";
import { byId, facts, html, setText } from "./dom.js";
import { bytes, change, seconds } from "./format.js";

const ACTIONS = ["pause", "resume", "cancel"];

let panel = null;

export const drawMigration = (snapshot, perform) => {
  const migration = snapshot.migration;
  const phase = byId("phase");
  phase.hidden = !migration;
  if (!migration) {
    panel = null;
    byId("migration").replaceChildren(html("p", { class: "note" }, "No migration yet."));
    return;
  }
  const key = `${snapshot.job} ${migration.number}`;
  if (panel?.key !== key) {
    panel = createPanel(snapshot.job, migration, key, perform);
    byId("migration").replaceChildren(panel.root);
  }
  const paused = migration.is_paused && migration.progress.phase === "paused";
  setText(phase, migration.is_paused && !paused ? "pausing" : migration.progress.phase);
  phase.dataset.state = migration.progress.phase;
  update(migration);
};

const createPanel = (job, migration, key, perform) => {
  const path = `/jobs/${encodeURIComponent(job)}/migrations/${migration.number}`;
  const button = (name, kind) =>
    html("button", { type: "button", id: name, class: kind, onclick: () => perform(() => post(`${path}/${name}`)) },
      name[0].toUpperCase() + name.slice(1));
  const buttons = [button("pause", ""), button("resume", ""), button("cancel", "danger")];
  const bar = html("div");
  const lines = html("pre", { class: "story", tabindex: 0 });
  const story = html("details", { id: "story" }, html("summary", {}, "Story"), lines);
  story.addEventListener("toggle", () => story.open && loadStory(path, lines));
  const numbers = html("dl", { class: "facts" });
  const error = html("p", { class: "bad", hidden: true });
  const root = html("div", { "data-number": migration.number },
    html("p", {}, html("strong", {}, `Migration ${migration.number}: ${change(migration)}`),
      html("span", { class: "note" }, `  strategy ${migration.strategy}, mode ${migration.mode}, transfer ${migration.transfer}`)),
    html("div", { class: "progress", role: "progressbar", "aria-label": "State moved", "aria-valuemin": 0, "aria-valuemax": 100 }, bar),
    html("div", { class: "under" }, numbers, html("div", { class: "line" }, ...buttons)), error, story);
  return { key, root, bar, numbers, error, buttons, story, lines, path };
};

const update = (migration) => {
  const { bar, numbers, error, buttons, story, lines, path, root } = panel;
  const progress = migration.progress;
  const share = progress.bytes ? progress.bytes_done / progress.bytes : migration.is_over ? 1 : 0;
  const moves = migration.level;
  bar.style.width = `${share * 100}%`;
  root.querySelector("[role=progressbar]").setAttribute("aria-valuenow", Math.round(share * 100));
  const unknown = progress.phase === "paused" ? "paused" : "–";
  const left = progress.seconds_left === null ? unknown : `about ${seconds(progress.seconds_left)}`;
  numbers.replaceChildren(...facts([
    ["moved", bytes(progress.bytes_done)],
    ["left", bytes(Math.max(0, progress.bytes - progress.bytes_done))],
    [moves, `${progress[`${moves}_done`]} of ${progress[moves]}`],
    ["elapsed", seconds(progress.seconds)],
    ["time left", migration.is_over ? "ended" : left],
  ]));
  const waiting = progress.overdue ? `Waiting for ${progress.waiting_for.join("; ")}.` : "";
  error.hidden = !(migration.error || waiting);
  setText(error, migration.error ?? waiting);
  const possible = { pause: !migration.is_paused, resume: migration.is_paused, cancel: true };
  buttons.forEach((button, index) => {
    button.disabled = migration.is_over || !possible[ACTIONS[index]];
  });
  if (story.open && !(migration.is_over && panel.complete)) {
    panel.complete = migration.is_over;
    loadStory(path, lines);
  }
};

const loadStory = async (path, lines) => {
  const story = await get(`${path}/story`).catch((problem) => ({ lines: [problem.message] }));
  setText(lines, story.lines.join("\n") || "No events yet.");
};
