// One frame: lines of pixels for the slices, then names, marks, the names of lanes and the ruler.
import { scanRow } from "./scan.js";
import { drawArea } from "./area.js";
import { laneY } from "./layout.js";
import { drawCollectives, drawPath, drawSelected, drawSteps } from "./marks.js";
import { fitted, tickOf, tickText, timeText } from "./words.js";

const LETTER = 6.05; // pixels of a letter of the font of names
const LEAST_NAMED = 30; // pixels of a slice that has its name in it
const STRIP = 9; // pixels of the strip of the critical path, at the top of the ruler
const FONT = "10px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** Draw the timeline as its state says. */
export function draw(state) {
  const { ctx, canvas } = state;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.fillStyle = state.ink.paper;
  ctx.fillRect(0, 0, Math.round(state.left * state.ratio), canvas.height);
  const named = drawSlices(state);
  ctx.setTransform(state.ratio, 0, 0, state.ratio, 0, 0);
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  ctx.save();
  ctx.beginPath();
  ctx.rect(state.left, state.layout.ruler, state.span, state.height - state.layout.ruler);
  ctx.clip();
  drawNames(state, named);
  drawSteps(ctx, state);
  drawArea(ctx, state);
  drawSelected(ctx, state);
  ctx.restore();
  drawLanes(state);
  drawRuler(state);
  const { from, scale } = state.view;
  state.range.textContent = `${timeText(from)} to ${timeText(from + state.span / scale)}`;
}

/** Draw all visible rows; return [row's top, slice] of those wide enough for a name. */
function drawSlices(state) {
  const { ctx, model, view, ratio } = state;
  const image = imageOf(state);
  const { width, pixels } = image;
  pixels.fill(state.paper);
  const scaled = { from: view.from, scale: view.scale * ratio };
  const named = [];
  for (let row = 0; row < model.rows.length; row++) {
    const top = state.rowY(row);
    if (top === null || top >= state.height) continue;
    drawRow(state, { row, top, width, image, pixels, scaled, named });
  }
  if (state.showCollectives) drawCollectives(state, image);
  if (state.showPath) {
    drawPath(state, image);
    drawStrip(state, pixels, width, scaled);
  }
  ctx.putImageData(image.data, Math.round(state.left * ratio), 0);
  return named;
}

/** Return the pixels of the slices' part of the canvas, the same as before while it keeps its size. */
function imageOf(state) {
  const width = Math.max(1, Math.round(state.span * state.ratio));
  const height = Math.max(1, Math.round(state.height * state.ratio));
  if (state.image?.width !== width || state.image.height !== height) {
    const data = state.ctx.createImageData(width, height);
    state.image = { width, height, data, pixels: new Uint32Array(data.data.buffer) };
  }
  state.rulerPixels = Math.round(state.layout.ruler * state.ratio);
  return state.image;
}

function drawRow(state, { row, top, width, image, pixels, scaled, named }) {
  const { model, ratio, layout } = state;
  const above = layout.fixed[row] ? layout.ruler : layout.head;
  const first = Math.max(Math.round(top * ratio), Math.round(above * ratio));
  const last = Math.min(Math.round((top + layout.row - 1) * ratio), image.height);
  if (first >= last) return;
  const line = pixels.subarray(first * width, (first + 1) * width);
  const wide = (slice) => { if (top + layout.row / 2 >= above) named.push([top, slice]); };
  scanRow(line, model, model.rows[row], scaled, { color: (i) => state.colors[model.name[i]], seam: state.paper, least: LEAST_NAMED * ratio, wide });
  for (let y = first + 1; y < last; y++) pixels.copyWithin(y * width, first * width, (first + 1) * width);
}

function drawNames(state, named) {
  const { ctx, model, layout } = state;
  ctx.textAlign = "left";
  for (const [top, slice] of named) {
    const left = Math.max(state.x(model.start[slice]), state.left) + 3;
    const right = Math.min(state.x(model.end[slice]), state.left + state.span);
    const room = Math.floor((right - left - 2) / LETTER);
    if (room < 3) continue;
    ctx.fillStyle = state.isFaint(slice) ? state.ink.faint : state.ink.name;
    ctx.fillText(fitted(model.short[model.name[slice]], room), left, top + layout.row / 2);
  }
}

/** Draw the critical path by what its time is spent on, as a strip above all lanes. */
function drawStrip(state, pixels, width, scaled) {
  const { model, ratio } = state;
  const height = Math.round(STRIP * ratio);
  const line = pixels.subarray(0, width);
  const color = (i) => state.categoryColors[model.path.category[i]];
  scanRow(line, model.path, model.path.row, scaled, { color, seam: state.paper, least: Infinity });
  for (let y = 1; y < height; y++) pixels.copyWithin(y * width, 0, width);
}

/** Draw the names of lanes: of those that scroll, then of those that are pinned. */
function drawLanes(state) {
  const { layout } = state;
  clipped(state, layout.head, state.height, () => {
    drawRanks(state);
    for (const lane of layout.lanes) if (!lane.fixed) drawLane(state, lane);
  });
  clipped(state, layout.ruler, layout.head, () => {
    for (const lane of layout.lanes) if (lane.fixed) drawLane(state, lane);
    state.ctx.fillStyle = state.ink.rank;
    state.ctx.fillRect(0, layout.head - 2, state.left + state.span, 2);
  });
}

function clipped(state, top, bottom, action) {
  const { ctx, left, span } = state;
  if (bottom <= top) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, top, left + span, bottom - top);
  ctx.clip();
  action();
  ctx.restore();
}

function drawRanks(state) {
  const { ctx, layout, view } = state;
  for (const { rank, top, named } of layout.ranks) {
    const y = top - view.y + layout.head;
    if (!named || y < layout.head - 20 || y > state.height) continue;
    ctx.fillStyle = state.ink.rank;
    ctx.fillText(`rank ${rank}`, 6, y + 9);
    ctx.fillRect(0, y, state.left + state.span, 1);
  }
}

/** Draw the name of a lane, whether it can be opened, and whether it is pinned. */
function drawLane(state, lane) {
  const { ctx, model, layout } = state;
  const y = laneY(state, lane);
  if (y + lane.bottom - lane.top < layout.ruler || y > state.height) return;
  const mark = lane.hidden ? "▸ " : model.lanes[lane.number].rows.length > 1 ? "▾ " : "  ";
  ctx.fillStyle = state.ink.ink;
  ctx.fillText(mark + fitted(lane.label, Math.floor((state.left - 38) / LETTER)), 8, y + layout.row / 2);
  ctx.fillStyle = lane.fixed ? state.ink.path : state.ink.faint;
  ctx.fillText(lane.fixed ? "◆" : "◇", state.left - 14, y + layout.row / 2);
}

function drawRuler(state) {
  const { ctx, view, layout, left, span } = state;
  const tick = tickOf(span / view.scale, span / 90);
  const to = view.from + span / view.scale;
  ctx.fillStyle = state.ink.ink;
  ctx.fillText(state.showPath ? "critical path" : "", 8, STRIP / 2 + 3);
  ctx.fillStyle = state.ink.rank;
  ctx.textAlign = "left";
  for (let moment = Math.ceil(view.from / tick) * tick; moment < to; moment += tick) {
    const x = Math.round(state.x(moment));
    ctx.fillRect(x, STRIP + 2, 1, layout.ruler - STRIP - 2);
    if (x < left + span - 60) ctx.fillText(tickText(moment, tick), x + 4, STRIP + 8);
  }
}
