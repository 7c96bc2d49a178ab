// Bars and curves of the what-if panel.

import { timeText, made } from "./words.js";

const [MOST_WIDTH, LEAST_WIDTH] = [640, 260]; // pixels of a chart; its letters keep their size
const LEFT = 64;
const RIGHT = 84;

/** Return an element of SVG; the page has one, whose namespace is that of all. */
function drawn(tag, attributes, text) {
  const element = document.createElementNS(document.querySelector(".what-if svg").namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Return the pixels that a chart of a panel may have. */
export function widthOf({ clientWidth }) {
  const columns = clientWidth >= 1080 ? 2 : 1;
  return Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, clientWidth / columns - 20));
}

function canvasOf(width, height, label) {
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  return drawn("svg", { ...size, class: "drawing", role: "img", "aria-label": label });
}

/** Return two bars in pieces, before and after; a piece is {name, css, before, after}, ns. */
export function stackedBars(pieces, label, width) {
  const chart = canvasOf(width, 64, label);
  const sum = (key) => pieces.reduce((total, piece) => total + Math.max(piece[key], 0), 0);
  const unit = (width - LEFT - RIGHT) / Math.max(sum("before"), sum("after"), 1);
  for (const [row, key] of [[0, "before"], [1, "after"]]) {
    chart.append(drawn("text", { x: 0, y: 20 + 28 * row }, key));
    let at = LEFT;
    for (const piece of pieces) {
      const length = Math.max(piece[key], 0) * unit;
      const bar = drawn("rect", { x: at, y: 6 + 28 * row, width: length, height: 20, class: piece.css });
      bar.append(drawn("title", {}, `${piece.name}: ${timeText(piece[key])}`));
      chart.append(bar);
      at += length;
    }
    chart.append(drawn("text", { x: at + 6, y: 20 + 28 * row }, timeText(sum(key))));
  }
  return chart;
}

/** Return the pieces of two bars as a table, largest first. */
export function legendOf(pieces, head) {
  const table = made("table", [made("caption", head)]);
  table.append(made("tr", ["", "before", "after"].map((word) => made("th", word, word && "number"))));
  for (const piece of pieces) {
    const swatch = drawn("svg", { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" });
    swatch.append(drawn("rect", { width: 10, height: 10, class: piece.css }));
    const times = [piece.before, piece.after].map((ns) => made("td", timeText(ns), "number"));
    table.append(made("tr", [made("td", [swatch, ` ${piece.name}`], "text"), ...times]));
  }
  return table;
}

/** Return a bar for each step before and after; a step is {name, before, after}, ns. */
export function stepBars(steps, most, width) {
  const shown = steps.slice(0, most);
  const chart = canvasOf(width, 10 + 30 * shown.length, "Time of each step before and after");
  const longest = Math.max(1, ...shown.flatMap(({ before, after }) => [before, after]));
  const unit = (width - LEFT - RIGHT) / longest;
  shown.forEach(({ name, before, after }, row) => {
    chart.append(drawn("text", { x: 0, y: 22 + 30 * row }, name));
    for (const [line, ns, css] of [[0, before, "c-idle"], [1, after, "c-computation"]]) {
      const at = { x: LEFT, y: 6 + 30 * row + 12 * line, height: 11, width: Math.max(ns, 0) * unit, class: css };
      chart.append(drawn("rect", at));
    }
    chart.append(drawn("text", { x: LEFT + Math.max(before, after) * unit + 6, y: 22 + 30 * row }, timeText(after)));
  });
  return chart;
}

/** Return a curve of the step time, ns, over the share of a class's time; `at` marks the share that is chosen. */
export function curveOf(points, at, label, width) {
  const [height, top, low] = [190, 14, 160];
  const chart = canvasOf(width, height, label);
  const most = Math.max(1, ...points.map(({ ns }) => ns));
  const x = (factor) => LEFT + ((width - LEFT - RIGHT) * factor) / 2;
  const y = (ns) => low - ((low - top) * ns) / most;
  for (const factor of [0, 0.5, 1, 1.5, 2]) {
    chart.append(drawn("line", { x1: x(factor), x2: x(factor), y1: top, y2: low, class: "axis" }));
    const place = { x: x(factor), y: low + 18, "text-anchor": "middle", class: "small" };
    chart.append(drawn("text", place, `${100 * factor} %`));
  }
  for (const ns of [0, most / 2, most]) {
    chart.append(drawn("line", { x1: LEFT, x2: x(2), y1: y(ns), y2: y(ns), class: "axis" }));
    chart.append(drawn("text", { x: LEFT - 6, y: y(ns) + 4, "text-anchor": "end", class: "small" }, timeText(ns)));
  }
  const line = points.map(({ factor, ns }) => `${x(factor)},${y(ns)}`).join(" ");
  chart.append(drawn("polyline", { points: line, class: "curve" }));
  chart.append(drawn("circle", { cx: x(at.factor), cy: y(at.ns), r: 4, class: "c-communication" }));
  return chart;
}
