// Numbers and times as text.

const digits = (value) => (value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2);

const scale = (value, steps, base) => {
  let step = 0;
  while (value >= base && step < steps.length - 1) {
    value /= base;
    step += 1;
  }
  return [step === 0 ? String(Math.round(value)) : value.toFixed(digits(value)), steps[step]];
};

export const bytes = (value) => scale(value, ["B", "kB", "MB", "GB", "TB"], 1000).join(" ");

export const count = (value) => {
  const [number, step] = scale(value, ["", "k", "M", "G"], 1000);
  return number + (step ? ` ${step}` : "");
};

export const plural = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

// The label of a migration.
export const change = ({ nodes_before: before, nodes_after: after, level, progress }) => {
  if (level === "keys") return `move ${plural(progress.keys, "key")}`;
  return before === after ? `rebalance ${plural(after, "node")}` : `${before} → ${after} nodes`;
};

export const seconds = (value) => {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
};

export const milliseconds = (value) => (value === null || value === undefined ? "–" : seconds(value / 1000));

export const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(value * 100)} %`);

// With a decimal below 10 %, where shares of keys differ.
export const percent = (value) => `${(value * 100).toFixed(value < 0.0995 ? 1 : 0)} %`;

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

export const day = (ms) => new Date(ms).toLocaleString([], { hour12: false });

// Tasks 3, 4, 5, 9 as "3–5, 9".
export const ranges = (numbers) => {
  const runs = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
};
