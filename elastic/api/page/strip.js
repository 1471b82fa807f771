// The task strip: one column per task, with bars for its work and its state. During a migration a second row shows the
// target, and tasks in flight are animated from the first row to the second.

import { colourOf } from "./colours.js";
import { byId, html, onWidth, svg, setTitle } from "./dom.js";
import { bytes, plural, ranges, seconds } from "./format.js";
import { describeAbsence } from "./nodes.js";

const BARS = 44;
const ROW = 28;
const GAP = 34;
const LEFT = 46;
const MARK = 5; // height of the mark of a task that hosts guests
const LINGER_MS = 4000; // a migration stays visible this long after its end

let drawn = null;

export const drawStrip = (snapshot, width) => {
  const box = byId("strip");
  width ??= Math.round(box.getBoundingClientRect().width) || 600;
  const migration = visibleMigration(snapshot);
  const hosting = snapshot.tables.length > 0;
  const key = [snapshot.job, snapshot.owners.length, width, migration !== null, hosting].join();
  byId("guests-note").hidden = !hosting;
  if (drawn?.key !== key) {
    drawn = skeleton(snapshot.owners.length, width, migration !== null, hosting, key);
    box.replaceChildren(drawn.root);
  }
  update(drawn, snapshot, migration);
  drawLegend(snapshot);
};

const visibleMigration = (snapshot) => {
  const migration = snapshot.migration;
  if (!migration || !migration.moves.length) return null;
  return migration.is_over && snapshot.at_ms - migration.ended_ms > LINGER_MS ? null : migration;
};

const skeleton = (tasks, width, moving, hosting, key) => {
  const step = (width - LEFT) / tasks;
  const cell = Math.max(1, step - (step > 6 ? 2 : step > 3 ? 1 : 0));
  const now = BARS + 6;
  const after = now + ROW + GAP;
  const height = (moving ? after + ROW : now + ROW) + (hosting && !moving ? MARK : 0) + 18;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  const row = (y, text) => root.append(svg("text", { x: 0, y: y + ROW / 2 + 4 }, text));
  row(now, "now");
  if (moving) row(after, "after");
  const columns = [];
  for (let task = 0; task < tasks; task += 1) {
    const x = LEFT + task * step;
    const half = Math.max(0.5, cell / 2 - 0.5);
    const column = {
      x,
      work: svg("rect", { class: "work", x, width: half, rx: 1 }),
      size: svg("rect", { class: "size", x: x + cell - half, width: half, rx: 1 }),
      wire: svg("line", { class: "wire", x1: x + cell / 2, x2: x + cell / 2, y1: now + ROW, y2: after, visibility: "hidden" }),
      flight: svg("rect", { class: "flight", x, y: now, width: cell, height: ROW, rx: 3, visibility: "hidden" }),
      now: svg("rect", { class: "cell", x, y: now, width: cell, height: ROW, rx: 3, "data-task": task }),
      guests: svg("rect", { class: "guests", x, y: now + ROW + 2, width: cell, height: MARK - 1, rx: 1, visibility: "hidden" }),
      after: moving ? svg("rect", { class: "cell after", x, y: after, width: cell, height: ROW, rx: 3 }) : null,
    };
    column.flight.style.setProperty("--way", `${after - now}px`);
    column.flight.style.animationDelay = `${-((task * 0.37) % 1.1)}s`; // out of step with each other
    root.append(column.work, column.size, column.wire, column.now, column.guests);
    if (column.after) root.append(column.after);
    columns.push(column);
  }
  columns.forEach((column) => root.append(column.flight));
  const labels = svg("g");
  const axis = svg("g");
  const every = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((size) => size * step >= 34) ?? 256;
  for (let task = 0; task < tasks; task += every) {
    axis.append(svg("text", { x: LEFT + task * step + cell / 2, y: height - 3, "text-anchor": "middle" }, task));
  }
  root.append(labels, axis);
  return { key, root, columns, labels, step, cell, rows: moving ? [now, after] : [now] };
};

const update = (strip, snapshot, migration) => {
  const moves = new Map((migration?.moves ?? []).map((move) => [move.task, move]));
  const guests = countGuests(snapshot);
  const mostWork = Math.max(...snapshot.work, 1e-9);
  const mostState = Math.max(...snapshot.state_bytes, 1);
  strip.columns.forEach((column, task) => {
    const owner = snapshot.owners[task];
    const move = moves.get(task);
    bar(column.work, snapshot.work[task] / mostWork, colourOf(owner), "work");
    bar(column.size, snapshot.state_bytes[task] / mostState, "", "size");
    const moving = move?.state === "moving";
    column.now.setAttribute("class", `cell ${colourOf(owner)}${moving ? " lifted" : ""}`);
    column.now.dataset.owner = owner;
    column.now.dataset.state = move?.state ?? "stays";
    column.now.dataset.guests = guests.get(task) ?? 0;
    column.guests.setAttribute("visibility", guests.has(task) ? "visible" : "hidden");
    setTitle(column.now, describeTask(snapshot, task, owner, move, guests.get(task)));
    column.wire.setAttribute("visibility", move?.state === "waiting" ? "visible" : "hidden");
    animateMove(column.flight, moving ? move : null);
    if (column.after) {
      const target = move && move.state !== "skipped" ? move.target : owner;
      column.after.setAttribute("class", `cell after ${colourOf(target)}`);
      column.after.dataset.state = move?.state ?? "stays";
    }
  });
  const owners = [snapshot.owners];
  if (strip.rows.length > 1) owners.push(snapshot.owners.map((owner, task) => moves.get(task)?.target ?? owner));
  strip.labels.replaceChildren(...owners.flatMap((row, index) => runLabels(strip, row, strip.rows[index])));
  strip.root.setAttribute("aria-label", describe(snapshot, migration, guests));
};

// The number of guests by task, over all stages.
const countGuests = (snapshot) => {
  const guests = new Map();
  for (const { task, keys } of snapshot.tables.flatMap((table) => table.guests)) guests.set(task, (guests.get(task) ?? 0) + keys);
  return guests;
};

const bar = (rect, part, colour, kind) => {
  const height = part > 0 ? Math.max(1.5, part * BARS) : 0;
  rect.setAttribute("class", `${kind} ${colour}`);
  rect.setAttribute("y", BARS - height);
  rect.setAttribute("height", height);
};

const animateMove = (rect, move) => {
  rect.setAttribute("visibility", move ? "visible" : "hidden");
  if (!move) return;
  rect.style.setProperty("--from", `var(--node-${colourOf(move.source).slice(1)})`);
  rect.style.setProperty("--to", `var(--node-${colourOf(move.target).slice(1)})`);
};

const describeTask = (snapshot, task, owner, move, guests) => {
  const hosts = guests ? `, hosts ${plural(guests, "guest")}` : "";
  const movement = move ? `, ${move.state}: ${move.source} → ${move.target}` : "";
  const work = seconds(snapshot.work[task]);
  return `task ${task}: ${owner}, ${work} of work, ${bytes(snapshot.state_bytes[task])} of state${hosts}${movement}`;
};

const runs = (owners) => {
  const found = [];
  owners.forEach((owner, task) => {
    if (found.at(-1)?.owner === owner) found.at(-1).stop = task + 1;
    else found.push({ owner, start: task, stop: task + 1 });
  });
  return found;
};

const runLabels = (strip, owners, y) =>
  runs(owners).flatMap(({ owner, start, stop }) => {
    const width = (stop - start) * strip.step;
    const text = width > owner.length * 7.5 + 8 ? owner : /(\d+)$/.exec(owner)?.[1] ?? "";
    if (width < text.length * 8 + 4) return [];
    return [svg("text", { class: `run ${colourOf(owner)}`, x: LEFT + start * strip.step + width / 2 - 1, y: y + ROW / 2 + 4.5 }, text)];
  });

const describe = (snapshot, migration, guests) => {
  const nodes = [...new Set(snapshot.owners)].map((node) => {
    const tasks = snapshot.owners.flatMap((owner, task) => (owner === node ? [task] : []));
    return `${node}: ${ranges(tasks)}`;
  });
  const moving = migration ? ` In flight: ${migration.moves.filter((move) => move.state === "moving").length}.` : "";
  const hosts = guests.size ? ` Hosts of guests: ${ranges([...guests.keys()].sort((a, b) => a - b))}.` : "";
  return `${snapshot.owners.length} tasks. ${nodes.join("; ")}.${hosts}${moving}`;
};

const drawLegend = (snapshot) => {
  const items = snapshot.nodes.map((node) =>
    html("li", { class: colourOf(node.name), "data-serving": node.serving ? "true" : "false" },
      `${node.name} · ${node.tasks}${node.serving ? "" : ` · ${describeAbsence(snapshot)}`}`));
  byId("legend").replaceChildren(...items);
};

export const startStrip = (newest) => {
  onWidth(byId("strip"), (width) => newest() && drawStrip(newest(), width));
};
