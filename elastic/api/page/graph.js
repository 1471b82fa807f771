// The graph of a job: its inputs, stages and results, at the places that the server gives them. It does not change
// while a job runs, so it is drawn once for each job.

import { get } from "./api.js";
import { byId, setTitle, svg } from "./dom.js";

const WIDTH = 132;
const HEIGHT = 28;
const GAP_X = 36;
const GAP_Y = 12;
const MARGIN = 4;
const CHARACTERS = 18; // of a name that fit

const left = (node) => MARGIN + node.column * (WIDTH + GAP_X);
const top = (node) => MARGIN + node.row * (HEIGHT + GAP_Y);

const drawNode = (node) => {
  const text = node.label;
  const shown = text.length > CHARACTERS ? `${text.slice(0, CHARACTERS - 1)}…` : text;
  const radius = node.kind === "stage" ? 4 : HEIGHT / 2;
  const shape = svg(
    "g",
    { class: `graph-node ${node.kind}` },
    svg("rect", { x: left(node), y: top(node), width: WIDTH, height: HEIGHT, rx: radius }),
    svg("text", { x: left(node) + WIDTH / 2, y: top(node) + HEIGHT / 2 + 4, "text-anchor": "middle" }, shown),
  );
  return setTitle(shape, node.kind === "sink" ? `results of ${node.name}` : `${node.kind} ${node.name}`);
};

const drawEdge = (source, target) => {
  const [x1, y1] = [left(source) + WIDTH, top(source) + HEIGHT / 2];
  const [x2, y2] = [left(target), top(target) + HEIGHT / 2];
  const middle = (x1 + x2) / 2;
  const arrow = `M${x2 - 6} ${y2 - 4}L${x2} ${y2}L${x2 - 6} ${y2 + 4}`;
  return svg("path", { class: "graph-edge", d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}${arrow}` });
};

export const drawGraph = (graph) => {
  const width = Math.max(...graph.nodes.map(left)) + WIDTH + MARGIN;
  const height = Math.max(...graph.nodes.map(top)) + HEIGHT + MARGIN;
  const edges = graph.edges.map(([source, target]) => drawEdge(graph.nodes[source], graph.nodes[target]));
  const label = "Inputs, stages and results of the job";
  const options = { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label };
  byId("graph").replaceChildren(svg("svg", options, ...edges, ...graph.nodes.map(drawNode)));
};

export const loadGraph = (job) => get(`/jobs/${encodeURIComponent(job)}`).then((found) => drawGraph(found.graph));
