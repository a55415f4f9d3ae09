// The batches of each query whose checkpoints are kept: one bar for each, as high as the batch took long.

import { count, el, rate, svg, took } from "/dom.js";

const BAR = { width: 14, gap: 4, height: 56 };
const MOST = 40;

export function batches(checkpoints) {
  const queries = new Map();
  checkpoints.filter((each) => each.duration_ms !== null).forEach((each) => {
    queries.set(each.query, [...(queries.get(each.query) || []), each].slice(-MOST));
  });
  return el("div", { class: "batches" }, [...queries].map(([query, known]) => el("figure", {},
    picture(query, known), el("figcaption", { class: "soft" }, `${query}: batches ${known[0].batch} to ${known.at(-1).batch}`))));
}

function picture(query, known) {
  const most = Math.max(1, ...known.map((each) => each.duration_ms));
  const width = known.length * (BAR.width + BAR.gap);
  const longest = `${known.length} batches of ${query}; the longest took ${took(most)}`;
  return svg("svg", { width, height: BAR.height, viewBox: `0 0 ${width} ${BAR.height}`, role: "img", "aria-label": longest },
    known.map((each, number) => {
      const height = Math.max(2, (each.duration_ms / most) * BAR.height);
      const said = `batch ${each.batch}: ${took(each.duration_ms)}, ${count(each.rows)} rows, ${rate(each.rows_per_second)} a second`;
      const place = { x: number * (BAR.width + BAR.gap), y: BAR.height - height, width: BAR.width, height, rx: 2 };
      return svg("rect", { class: "batch", ...place }, svg("title", {}, said));
    }));
}
