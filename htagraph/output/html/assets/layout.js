// Where rows lie on the canvas: pinned lanes on top, where they stay, then all others, which scroll.
import { busyOf } from "./busy.js";

const ROW = 14; // pixels of a row of slices, with 1 between rows
const HEAD = 18; // pixels above the first lane of a rank, for its name
const TOP = 22; // pixels of the ruler
const OPEN_DEPTHS = 4; // rows of a thread that are shown before it is opened
const GUTTER = 150; // pixels left of the slices, for the names of lanes
const GUTTER_SHARE = 0.27; // of a narrow timeline, at most
const PINNED_SHARE = 0.5; // of the height, for pinned lanes: the others keep as much

/** Return the pixels left of the slices. */
export function gutterOf(width) {
  return Math.min(GUTTER, Math.round(GUTTER_SHARE * width));
}

/**
 * Return where rows, lanes and ranks are, pixels: `top` of every row (-1 where closed), and which are `fixed`; those
 * count from below the ruler, others from below `head`, where the pinned lanes end.
 */
export function layoutOf(model, { open, pins, order, height: room }) {
  const layout = {
    top: new Float64Array(model.rows.length).fill(-1), fixed: new Uint8Array(model.rows.length), lanes: [], ranks: [],
    byNumber: [], row: ROW, ruler: TOP, head: TOP, height: 0,
  };
  const most = PINNED_SHARE * ((room || Infinity) - TOP);
  let y = 0;
  for (const number of pins) {
    const size = shownOf(model.lanes[number], open.get(number)) * ROW + 3;
    if (y + size > most) continue;
    addLane(layout, model, number, { y, open, fixed: true, rank: -1 });
    y += size;
  }
  layout.head = TOP + (y ? y + 2 : 0);
  addScrolled(layout, model, { open, order });
  return layout;
}

function addScrolled(layout, model, { open, order }) {
  const pinned = new Set(layout.lanes.map(({ number }) => number));
  const byRank = order === "rank";
  let y = 0;
  for (const number of inOrder(model, order)) {
    if (pinned.has(number)) continue;
    const { rank } = model.lanes[number];
    if (!byRank || layout.ranks.at(-1)?.rank !== rank) {
      layout.ranks.push({ rank, top: y, named: byRank });
      y += byRank ? HEAD : 0;
    }
    addLane(layout, model, number, { y, open, fixed: false, rank: layout.ranks.length - 1 });
    y += shownOf(model.lanes[number], open.get(number)) * ROW + 3;
    layout.ranks.at(-1).bottom = y;
  }
  layout.height = y;
}

/** Return the numbers of lanes from top to bottom: by rank, or the busiest first. */
function inOrder(model, order) {
  const numbers = model.lanes.map((_, number) => number);
  if (order !== "busy") return numbers;
  const busy = busyOf(model);
  return numbers.sort((a, b) => busy[b] - busy[a] || a - b);
}

function addLane(layout, model, number, { y, open, fixed, rank }) {
  const lane = model.lanes[number];
  const shown = shownOf(lane, open.get(number));
  const label = rank >= 0 && layout.ranks[rank].named ? lane.label : `${lane.rank} · ${lane.label}`;
  const placed = { number, rank, top: y, bottom: y + shown * ROW, hidden: lane.rows.length - shown, fixed, label };
  layout.lanes.push(placed);
  layout.byNumber[number] = placed;
  for (let depth = 0; depth < shown; depth++) {
    layout.top[lane.firstRow + depth] = y + depth * ROW;
    layout.fixed[lane.firstRow + depth] = fixed ? 1 : 0;
  }
}

function shownOf(lane, isOpen) {
  const most = isOpen === true ? Infinity : isOpen === false ? 1 : lane.device ? Infinity : OPEN_DEPTHS;
  return Math.min(lane.rows.length, most);
}

/** Return where a lane is on the canvas. */
export function laneY({ layout, view }, { top, fixed }) {
  return fixed ? layout.ruler + top : layout.head + top - view.y;
}

/** Return where a row is on the canvas; null where it is closed, or scrolled below the pinned lanes. */
export function rowYOf({ layout, view }, row) {
  const top = layout.top[row];
  if (top < 0) return null;
  if (layout.fixed[row]) return layout.ruler + top;
  const y = layout.head + top - view.y;
  return y + layout.row <= layout.head ? null : y;
}

/** Return the lane at a height of the canvas, if there is one. */
export function laneAt(state, y) {
  const { layout } = state;
  return layout.lanes.find((lane) => {
    const top = laneY(state, lane);
    return y >= top && y < top + lane.bottom - lane.top && (lane.fixed || y >= layout.head);
  });
}
