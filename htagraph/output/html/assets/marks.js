// What is drawn over the slices: the critical path, collectives, steps, the selected slice and what launched it.
import { firstAfter, rowOf } from "./model.js";
import { gallop } from "./scan.js";

const MOST_JOINED = 400; // collectives drawn at once: more are a solid area

/** Return where a slice's row is on the canvas; a closed row is drawn in the last open one of its lane. */
export function rowTop(state, slice) {
  const { model, layout, view } = state;
  const row = rowOf(model, slice);
  const top = layout.top[row];
  if (top >= 0) return top - view.y + layout.ruler;
  return layout.lanes[model.rows[row].lane].bottom - layout.row - view.y + layout.ruler;
}

/** Draw the critical path as a line under its slices, and its edges as lines between them. */
export function drawPath(ctx, state) {
  const { model, view, layout } = state;
  const { start, end, slice } = model.path;
  const to = view.from + state.width / view.scale;
  let i = firstAfter(end, view.from, 0, start.length);
  let before = null;
  ctx.beginPath();
  while (i < start.length && start[i] < to) {
    if (slice[i] >= 0) {
      const y = rowTop(state, slice[i]) + layout.row - 2;
      const left = Math.max(state.x(start[i]), state.left);
      if (before !== null && before !== y) {
        ctx.moveTo(left, before);
        ctx.lineTo(left, y);
      }
      ctx.moveTo(left, y);
      ctx.lineTo(Math.max(state.x(end[i]), left + 1), y);
      before = y;
    }
    const pixel = Math.floor((end[i] - view.from) * view.scale);
    i = gallop(end, i + 1, end.length, view.from + pixel / view.scale);
  }
  ctx.strokeStyle = state.ink.path;
  ctx.lineWidth = 2;
  ctx.stroke();
}

/** Draw lines between the members of each collective: one through their starts, one through their ends. */
export function drawCollectives(ctx, state) {
  const { model, view } = state;
  const to = view.from + state.width / view.scale;
  let count = 0;
  ctx.beginPath();
  for (const members of model.members) {
    if (!members || members.length < 2 || count > MOST_JOINED) continue;
    const from = Math.min(...members.map((each) => model.start[each]));
    const until = Math.max(...members.map((each) => model.end[each]));
    if (until < view.from || from > to || (until - from) * view.scale < 3) continue;
    count++;
    const placed = members.map((each) => [rowTop(state, each), each]).sort((a, b) => a[0] - b[0]);
    for (const moment of [model.start, model.end]) {
      placed.forEach(([y, each], at) => {
        const x = Math.min(Math.max(state.x(moment[each]), state.left), state.left + state.span);
        if (at) ctx.lineTo(x, y + 7);
        else ctx.moveTo(x, y + 7);
      });
    }
  }
  ctx.strokeStyle = state.ink.joined;
  ctx.lineWidth = 1;
  ctx.stroke();
}

/** Draw where steps begin and end, through all lanes of their rank. */
export function drawSteps(ctx, state) {
  const { model, layout, view } = state;
  ctx.beginPath();
  for (const slice of model.steps) {
    if ((model.end[slice] - model.start[slice]) * view.scale < 12) continue;
    const rank = model.lanes[model.rows[rowOf(model, slice)].lane].rank;
    const at = layout.ranks.findIndex((each) => each.rank === rank);
    const top = layout.ranks[at].top - view.y + layout.ruler;
    const bottom = (layout.ranks[at + 1]?.top ?? layout.height) - view.y + layout.ruler;
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
  ctx.strokeRect(left, y - 0.5, Math.max(right - left, 2), layout.row);
  ctx.beginPath();
  for (const [from, to] of state.launches) {
    ctx.moveTo(state.x(model.end[from]), rowTop(state, from) + 7);
    ctx.lineTo(state.x(model.start[to]), rowTop(state, to) + 7);
  }
  ctx.lineWidth = 1;
  ctx.stroke();
}
