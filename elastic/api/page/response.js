// Stacked response times: the trigger until a batch is committed, and the lag until its results are published.
// Migrations are bands, lost nodes are dashed lines.

import { byId, onWidth, svg, setTitle } from "./dom.js";
import { change, clock, milliseconds } from "./format.js";

const HEIGHT = 230;
const EDGE = { right: 8, bottom: 22, left: 54 };
const LANE = 14; // pixels; labels of migrations that would overlap are placed in lanes above the plot
const LANES = 5;
const HOLD_MS = 3000; // a value is shown this long without an update; then there is a gap
const MAX_POINTS = 1200;
const WARM_UP_BATCHES = 3; // Spark's first batches take seconds: they are drawn, but do not set the scale
const LETTER = 7; // pixels, about
const NO_BATCH = "No batch was applied recently.";

let points = [];
let marks = [];
const bands = new Map();
let pointer = null;
let widthNow = () => 600;

export const reset = () => {
  points = [];
  marks = [];
  bands.clear();
};

export const addHistory = (responses) => {
  const known = new Set(points.map((point) => point.id));
  points.push(...responses.filter((response) => !known.has(response.id)));
  points.sort((a, b) => a.at_ms - b.at_ms);
};

export const addBands = (migrations) => migrations.forEach((migration) => bands.set(migration.number, migration));

export const addSnapshot = (snapshot) => {
  if (points.at(-1)?.id !== snapshot.response.id) points.push(snapshot.response);
  if (points.length > MAX_POINTS) points = points.slice(-MAX_POINTS);
  marks = snapshot.marks;
  if (snapshot.migration) bands.set(snapshot.migration.number, snapshot.migration);
  draw();
};

export const startResponse = () => {
  widthNow = onWidth(byId("response"), draw);
  byId("span").addEventListener("change", draw);
  byId("response").addEventListener("pointermove", (event) => {
    pointer = event.offsetX;
    draw();
  });
  byId("response").addEventListener("pointerleave", () => {
    pointer = null;
    draw();
  });
};

const draw = () => {
  const width = widthNow();
  const span = Number(byId("span").value) * 1000;
  const end = points.at(-1)?.at_ms ?? Date.now();
  const held = fillGaps(points.filter((point) => point.at_ms >= end - span - HOLD_MS));
  const seen = held.filter((point) => point.at_ms >= end - span);
  const settled = seen.filter((point) => point.batch >= WARM_UP_BATCHES);
  const most = Math.max(...(settled.length ? settled : seen).map((point) => point.trigger + point.lag), 100);
  const [top, ticks] = scale(most);
  const x = (at) => EDGE.left + ((at - end + span) / span) * (width - EDGE.left - EDGE.right);
  const names = lanes(x, end - span, width - EDGE.right);
  const ceiling = 10 + LANE * Math.max(1, ...names.map(({ lane }) => lane + 1));
  const y = (ms) => HEIGHT - EDGE.bottom - (ms / top) * (HEIGHT - ceiling - EDGE.bottom);
  const root = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img" });
  const clip = svg("clipPath", { id: "plot" },
    svg("rect", { x: EDGE.left, y: 0, width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.bottom }));
  const inside = svg("g", { "clip-path": "url(#plot)" });
  inside.append(...migrationBands(names, x, end, ceiling), ...areas(held, x, y), ...losses(x, ceiling));
  root.append(clip, ...axes(ticks, span, end, x, y, width), inside, ...emptyNote(held, width), ...tip(held, x, width, ceiling));
  root.setAttribute("aria-label", describe(held));
  byId("response").replaceChildren(root);
};

// Fills gaps with the last known values, for HOLD_MS at most.
const fillGaps = (shown) => {
  let trigger = null;
  let lag = null;
  let updated = -Infinity;
  return shown.map((point) => {
    if (point.trigger_ms !== null || point.apply_lag_ms !== null) updated = point.at_ms;
    trigger = point.trigger_ms ?? trigger;
    lag = point.apply_lag_ms ?? (point.trigger_ms === null ? lag : 0);
    const known = point.at_ms - updated <= HOLD_MS;
    return { ...point, known, trigger: known ? trigger ?? 0 : 0, lag: known ? lag ?? 0 : 0 };
  });
};

const scale = (most) => {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const top = Math.ceil((most * 1.05) / step) * step;
  return [top, Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step)];
};

const areas = (held, x, y) => {
  const pieces = [[]];
  for (const point of held) {
    if (point.known) pieces.at(-1).push(point);
    else if (pieces.at(-1).length) pieces.push([]);
  }
  const area = (piece, kind, low, high) => {
    const up = piece.map((point) => `${x(point.at_ms).toFixed(1)},${y(high(point)).toFixed(1)}`);
    const down = piece.map((point) => `${x(point.at_ms).toFixed(1)},${y(low(point)).toFixed(1)}`).reverse();
    return svg("path", { class: kind, d: `M${[...up, ...down].join("L")}Z` });
  };
  return pieces.filter((piece) => piece.length > 1).flatMap((piece) => [
    area(piece, "trigger", () => 0, (point) => point.trigger),
    area(piece, "lag", (point) => point.trigger, (point) => point.trigger + point.lag),
  ]);
};

// Places the labels of migrations: newest first, each in the lowest lane where it overlaps no other.
const lanes = (x, since, right) => {
  const free = Array(LANES).fill(right);
  const seen = [...bands.values()].filter((migration) => (migration.ended_ms ?? Infinity) >= since);
  return seen.sort((a, b) => b.began_ms - a.began_ms).map((migration) => {
    const text = change(migration);
    const wide = text.length * LETTER;
    const place = Math.min(Math.max(x(migration.began_ms), EDGE.left) + 2, right - wide);
    const lane = free.findIndex((edge) => place + wide <= edge);
    if (lane >= 0) free[lane] = place - LETTER;
    return { migration, text, place, lane };
  });
};

const migrationBands = (names, x, end, ceiling) =>
  names.flatMap(({ migration, text, place, lane }) => {
    const from = x(migration.began_ms);
    const to = Math.max(from + 2, x(migration.ended_ms ?? end));
    const top = ceiling - 6;
    const band = svg("rect", { class: "band", x: from, y: top, width: to - from, height: HEIGHT - top - EDGE.bottom });
    setTitle(band, `Migration ${migration.number}: ${text}, ${migration.strategy}, ${migration.mode}, ${migration.progress.phase}`);
    const edge = svg("line", { class: "edge", x1: from, x2: from, y1: top, y2: HEIGHT - EDGE.bottom });
    const name = svg("text", { class: "name", x: place, y: ceiling - 11 - LANE * Math.max(lane, 0) }, text);
    return lane < 0 ? [band, edge] : [band, edge, name];
  });

const losses = (x, ceiling) =>
  marks.flatMap((mark) => [
    svg("line", { class: "loss", x1: x(mark.at_ms), x2: x(mark.at_ms), y1: ceiling - 6, y2: HEIGHT - EDGE.bottom },
      svg("title", {}, mark.text)),
  ]);

const axes = (ticks, span, end, x, y, width) => {
  const lines = ticks.flatMap((tick) => [
    svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(tick), y2: y(tick) }),
    svg("text", { x: EDGE.left - 7, y: y(tick) + 4, "text-anchor": "end" }, milliseconds(tick)),
  ]);
  const every = span / (width > 500 ? 6 : 3);
  const first = Math.ceil((end - span) / every) * every;
  for (let at = first; at <= end; at += every) {
    if (x(at) > EDGE.left + 20 && x(at) < width - 28) {
      lines.push(svg("text", { x: x(at), y: HEIGHT - 5, "text-anchor": "middle" }, clock(at)));
    }
  }
  return lines;
};

// The reason for an empty chart.
const emptyNote = (held, width) =>
  held.some((point) => point.known)
    ? []
    : [svg("text", { class: "quiet", x: (EDGE.left + width) / 2, y: HEIGHT / 2, "text-anchor": "middle" }, NO_BATCH)];

const tip = (held, x, width, ceiling) => {
  if (pointer === null || !held.length) return [];
  const near = held.reduce((best, point) =>
    Math.abs(x(point.at_ms) - pointer) < Math.abs(x(best.at_ms) - pointer) ? point : best);
  const at = x(near.at_ms);
  const left = Math.min(Math.max(at + 8, EDGE.left), width - 178);
  const lines = [
    `${clock(near.at_ms)}  batch ${near.batch}`,
    `trigger ${near.known ? milliseconds(near.trigger) : "–"}`,
    `apply lag ${near.known ? milliseconds(near.lag) : "–"}`,
  ];
  return [
    svg("line", { class: "hair", x1: at, x2: at, y1: ceiling - 6, y2: HEIGHT - EDGE.bottom }),
    svg("g", { class: "tip" }, svg("rect", { x: left, y: 26, width: 170, height: 58, rx: 6 }),
      ...lines.map((line, index) => svg("text", { x: left + 10, y: 44 + index * 16 }, line))),
  ];
};

const describe = (held) => {
  const last = held.at(-1);
  if (!last?.known) return NO_BATCH;
  return `Newest: trigger ${milliseconds(last.trigger)}, apply lag ${milliseconds(last.lag)}.`;
};
