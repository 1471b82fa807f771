// The heaviest keys by hash, with the token by name, and the key tables against their limit.

import { getPrivate, getWithToken, hasToken, onToken } from "./api.js";
import { colourOf } from "./colours.js";
import { byId, html, setText } from "./dom.js";
import { bytes, count, percent, plural, seconds } from "./format.js";

let job = null;
let names = new Map(); // by hash; only with the token
let asked = ""; // the hashes whose names were requested last

export const drawKeys = (snapshot) => {
  if (job !== snapshot.job) [job, names, asked] = [snapshot.job, new Map(), ""];
  const keys = snapshot.keys ?? [];
  byId("keys-card").hidden = snapshot.keys === null && !snapshot.tables.length;
  byId("balance").hidden = !snapshot.tables.length;
  byId("names").hidden = hasToken() || !keys.length;
  if (hasToken()) loadNames(keys);
  drawList(keys, snapshot.tables.length > 1);
  byId("tables").replaceChildren(...snapshot.tables.map(drawTable));
};

export const startKeys = (perform, newest) => {
  byId("names").addEventListener("click", () => perform(() => getPrivate(namesPath(), hasNames).then(keepNames)));
  onToken(() => newest() && drawKeys(newest()));
};

const namesPath = () => `/jobs/${encodeURIComponent(job)}/keys?top=100`;

// A wrong token is no error in a read: the answer has no names then.
const hasNames = (found) => !found.keys.length || found.keys.some((key) => key.name !== null);

const keepNames = (found) => {
  found?.keys.forEach((key) => key.name !== null && names.set(key.hash, key.name));
};

const loadNames = (keys) => {
  const missing = keys.map((key) => key.hash).filter((hash) => !names.has(hash)).join();
  if (!missing || missing === asked) return; // some keys have no name
  asked = missing;
  getWithToken(namesPath()).then(keepNames).catch(() => (asked = ""));
};

const drawList = (keys, several) => {
  const box = byId("keys");
  if (!keys.length) {
    box.replaceChildren(html("p", { class: "note" }, "No interval is complete yet, or no row has arrived in it."));
    return;
  }
  const titles = ["key", "node", "share of the work", ""].map((title) => html("span", { class: "title" }, title));
  if (box.querySelectorAll(".row.one").length !== keys.length) box.replaceChildren(html("div", { class: "row titles" }, ...titles), ...keys.map(createRow));
  const most = Math.max(...keys.map((key) => key.share), 1e-9);
  box.querySelectorAll(".row.one").forEach((row, index) => updateRow(row, keys[index], most, several));
};

const createRow = () =>
  html("div", { class: "row one" },
    html("span", { class: "name" }, html("span", { class: "label" }), html("span", { class: "guest" }, "guest")),
    html("span", { class: "swatch" }), html("div", { class: "bar" }, html("div", { class: "fill" })), html("span", { class: "value" }));

const updateRow = (row, key, most, several) => {
  const [name, node, bar, value] = row.children;
  const label = names.get(key.hash) ?? key.hash;
  row.dataset.hash = key.hash;
  row.dataset.guest = key.guest;
  setText(name.firstChild, several ? `${key.stage}: ${label}` : label);
  name.firstChild.classList.toggle("hash", !names.has(key.hash));
  name.lastChild.hidden = !key.guest;
  node.className = `swatch ${colourOf(key.node)}`;
  setText(node, key.node);
  bar.firstChild.className = `fill ${colourOf(key.node)}`;
  bar.firstChild.style.width = `${(key.share / most) * 100}%`;
  setText(value, percent(key.share));
  row.title = `${count(key.rows)} rows, ${seconds(key.seconds)} of work, ${bytes(key.state_bytes)} of state; ` +
    (key.guest ? `guest of task ${key.task} on ${key.node}, home ${key.home}` : `task ${key.task} on ${key.node}`);
};

const drawTable = (table) => {
  const fill = html("div", { class: "fill" });
  const full = table.entries / table.most_entries;
  fill.style.width = `${Math.min(1, full) * 100}%`;
  const text = `${table.entries.toLocaleString("en")} of ${table.most_entries.toLocaleString("en")} entries`;
  const guests = table.guests.length ? `${plural(table.guests.length, "task")} with guests` : "no guests";
  return html("div", { class: "table", "data-full": full > 0.9 },
    html("span", {}, `Key table of ${table.stage}`),
    html("div", { class: "bar", role: "meter", "aria-label": `Key table of ${table.stage}`, "aria-valuemin": 0,
      "aria-valuemax": table.most_entries, "aria-valuenow": table.entries }, fill),
    html("span", { class: "note" }, `${text}, ${guests}`));
};
