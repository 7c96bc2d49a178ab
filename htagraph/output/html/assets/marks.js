// What is drawn over the slices: the critical path, collectives, steps, the selected slice and what launched it.
import { collectivesIn } from "./busy.js";
import { laneY, rowYOf } from "./layout.js";
import { rowOf } from "./model.js";
import { gallop } from "./scan.js";

const MOST_JOINED = 120; // collectives drawn at once: more are a solid area
const LEAST_JOINED = 5; // pixels from the first start to the last end of a collective that is drawn
const EDGE_ROOM = 3; // pixels between edges of the path: closer ones are a solid area

/** Return where a slice's row is on the canvas; a closed row is drawn in the last open one of its lane. */
export function rowTop(state, slice) {
  const { model, layout } = state;
  const row = rowOf(model, slice);
  const lane = layout.byNumber[model.rows[row].lane];
  const inside = layout.top[row] >= 0 ? layout.top[row] - lane.top : lane.bottom - lane.top - layout.row;
  return laneY(state, lane) + inside;
}

/** Draw the critical path into pixels: a line under its slices, and its edges as lines from row to row. */
export function drawPath(state, image) {
  const { model, view, layout, ratio } = state;
  const { start, end, slice, row } = model.path;
  const scale = view.scale * ratio;
  const to = view.from + image.width / scale;
  const least = Math.round(EDGE_ROOM * ratio);
  let [before, edge] = [-1, -least];
  let i = gallop(end, row, 0, view.from);
  while (i < start.length && start[i] < to) {
    const left = Math.max(0, Math.floor((start[i] - view.from) * scale));
    const right = Math.floor((end[i] - view.from) * scale);
    if (slice[i] >= 0) {
      const y = Math.round((rowTop(state, slice[i]) + layout.row - 2) * ratio);
      if (isSeen(state, slice[i])) fillBox(image, left, Math.max(right, left + 1), y - 1, y + 1, state.pathColor, state.rulerPixels);
      if (before >= 0 && before !== y && left - edge >= least) {
        fillBox(image, left, left + 1, Math.min(before, y), Math.max(before, y), state.pathColor, state.rulerPixels);
        edge = left;
      }
      before = y;
    }
    i = right > left ? i + 1 : gallop(end, row, i + 1, view.from + (left + 1) / scale);
  }
}

/** Return whether the row of a slice is not scrolled below the pinned lanes; a closed one is drawn in an open one. */
function isSeen(state, slice) {
  const row = rowOf(state.model, slice);
  return state.layout.top[row] < 0 || rowYOf(state, row) !== null;
}

/** Fill a box of pixels below the ruler. */
function fillBox({ width, height, pixels }, left, right, top, bottom, color, ruler) {
  const until = Math.min(right, width);
  for (let y = Math.max(top, ruler); y < Math.min(bottom, height); y++) pixels.fill(color, y * width + left, y * width + until);
}

/** Draw lines between the members of each collective into pixels: through their starts, and through their ends. */
export function drawCollectives(state, image) {
  const { model, view, ratio, layout } = state;
  const { slice, first, from, until } = model.members;
  for (const i of collectivesIn(model, view.from, view.from + state.span / view.scale, MOST_JOINED)) {
    if ((until[i] - from[i]) * view.scale < LEAST_JOINED) break; // the longest come first
    const members = slice.slice(first[i], first[i + 1]);
    const placed = members.map((each) => [(rowTop(state, each) + layout.row / 2) * ratio, each]);
    placed.sort((a, b) => a[0] - b[0]);
    for (const moment of [model.start, model.end]) {
      const points = placed.map(([y, each]) => [(moment[each] - view.from) * view.scale * ratio, y]);
      for (let at = 1; at < points.length; at++) line(image, points[at - 1], points[at], state);
    }
  }
}

/** Draw a line of pixels from a point to one below it. */
function line({ width, height, pixels }, [x0, y0], [x1, y1], state) {
  const from = Math.max(Math.round(y0), state.rulerPixels);
  const to = Math.min(Math.round(y1), height - 1);
  const slope = (x1 - x0) / Math.max(y1 - y0, 1);
  for (let y = from; y <= to; y++) {
    const first = x0 + slope * (y - y0);
    const left = Math.max(Math.round(Math.min(first, first + slope)), 0);
    const right = Math.min(Math.round(Math.max(first, first + slope)) + 1, width);
    for (let at = y * width + left; at < y * width + right; at++) {
      pixels[at] = pixels[at] === state.paper ? state.joinedColor : blended(pixels[at], state.joinedColor);
    }
  }
}

/** Return a color of a slice with some of a line's, so that the slice below is seen. */
function blended(slice, mark) {
  const part = (shift) => (2 * ((slice >>> shift) & 255) + ((mark >>> shift) & 255)) / 3;
  return ((255 << 24) | (part(16) << 16) | (part(8) << 8) | part(0)) >>> 0;
}

/** Draw where steps begin and end, through all lanes of their rank. */
export function drawSteps(ctx, state) {
  const { model, layout, view } = state;
  ctx.beginPath();
  for (const slice of model.steps) {
    if ((model.end[slice] - model.start[slice]) * view.scale < 12) continue;
    const at = layout.byNumber[model.rows[rowOf(model, slice)].lane].rank;
    if (at < 0) continue; // pinned
    const top = Math.max(layout.ranks[at].top - view.y + layout.head, layout.head);
    const bottom = Math.max(layout.ranks[at].bottom - view.y + layout.head, layout.head);
    for (const moment of [model.start[slice], model.end[slice]]) {
      const x = Math.round(state.x(moment)) + 0.5;
      if (x < state.left || x > state.left + state.span) continue;
      ctx.moveTo(x, top);
      ctx.lineTo(x, bottom);
    }
  }
  ctx.strokeStyle = state.ink.step;
  ctx.lineWidth = 1;
  ctx.setLineDash([3, 3]);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** Draw a frame around the selected slice, and lines between it and what launched it or what it launched. */
export function drawSelected(ctx, state) {
  const { model, selected, layout } = state;
  if (selected < 0) return;
  const left = Math.max(state.x(model.start[selected]), state.left - 2);
  const right = Math.min(state.x(model.end[selected]), state.left + state.span + 2);
  const y = rowTop(state, selected);
  ctx.strokeStyle = state.ink.ink;
  ctx.lineWidth = 2;
  if (isSeen(state, selected)) ctx.strokeRect(left, y - 0.5, Math.max(right - left, 2), layout.row);
  ctx.beginPath();
  for (const [from, to] of state.launches) {
    ctx.moveTo(state.x(model.end[from]), rowTop(state, from) + 7);
    ctx.lineTo(state.x(model.start[to]), rowTop(state, to) + 7);
  }
  ctx.lineWidth = 1;
  ctx.stroke();
}
