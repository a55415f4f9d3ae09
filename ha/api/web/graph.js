// The graph of a job: its queries from left to right as they read each other, in boxes for their regions.

import { el, kind, svg } from "/dom.js";

const BOX = { width: 190, height: 54 };
const GAP = { x: 70, y: 18 };
const PAD = 16;

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const feeds = (one, other) => one.writes.some((each) => other.reads.includes(each));

// How many queries stand before each of them; a circle ends where it began.
function columns(queries) {
  const depth = new Map();
  const of = (query, path) => {
    if (depth.has(query)) return depth.get(query);
    const before = queries.filter((each) => each !== query && !path.includes(each) && feeds(each, query));
    const found = Math.max(-1, ...before.map((each) => of(each, [...path, query]))) + 1;
    if (!path.length) depth.set(query, found);
    return found;
  };
  queries.forEach((each) => of(each, []));
  return depth;
}

export function graph(queries) {
  if (!queries.length) return el("p", { class: "soft" }, "No declared queries are known: ha.spark.Job declares them.");
  const depth = columns(queries);
  const place = new Map();
  const picture = svg("svg", { role: "img", "aria-label": `${queries.length} queries` });
  let top = 0;
  let right = 0;
  for (const region of [...new Set(queries.map((each) => each.region))].sort((a, b) => a - b)) {
    const members = queries.filter((each) => each.region === region);
    const rows = [];
    members.forEach((each) => {
      const column = depth.get(each);
      rows[column] = (rows[column] ?? -1) + 1;
      place.set(each, {
        x: PAD + column * (BOX.width + GAP.x), y: top + 30 + rows[column] * (BOX.height + GAP.y),
      });
    });
    const height = 30 + Math.max(...rows.filter((each) => each !== undefined), 0) * (BOX.height + GAP.y) + BOX.height + PAD;
    const width = Math.max(...members.map((each) => place.get(each).x)) + BOX.width + PAD;
    picture.append(svg("rect", { class: "region", x: 1, y: top + 1, width, height, rx: 10 }),
      svg("text", { class: "soft", x: PAD, y: top + 20 }, `region ${region}`));
    top += height + GAP.y;
    right = Math.max(right, width);
  }
  for (const one of queries) for (const other of queries) if (one !== other && feeds(one, other)) picture.append(edge(place.get(one), place.get(other)));
  queries.forEach((each) => picture.append(node(each, place.get(each))));
  const size = { width: right + 2, height: top - GAP.y + 2 };
  Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` }).forEach(([name, value]) => picture.setAttribute(name, value));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Graph of the queries" }, picture);
}

function edge(from, to) {
  const a = { x: from.x + BOX.width, y: from.y + BOX.height / 2 };
  const b = { x: to.x, y: to.y + BOX.height / 2 };
  return svg("path", { class: "edge", d: `M${a.x} ${a.y}C${a.x + 40} ${a.y} ${b.x - 40} ${b.y} ${b.x} ${b.y}m-7 -4l7 4l-7 4` });
}

function node(query, { x, y }) {
  const said = `${query.query}: reads ${query.reads.join(", ") || "nothing"}; writes ${query.writes.join(", ") || "nothing"}`;
  const restarts = query.restarts ? `, ${query.restarts} restarts` : "";
  return svg("g", {}, svg("title", {}, said),
    svg("rect", { class: `node ${kind(query.state)}`, x, y, width: BOX.width, height: BOX.height, rx: 8 }),
    svg("text", { x: x + 12, y: y + 22, "font-weight": 600 }, clip(query.query, 24)),
    svg("text", { class: "soft", x: x + 12, y: y + 41 }, clip(`${query.state || "not started"}${restarts}`, 26)));
}
