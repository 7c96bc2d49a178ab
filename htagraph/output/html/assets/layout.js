// Where rows lie on the canvas.

const ROW = 14; // pixels of a row of slices, with 1 between rows
const HEAD = 18; // pixels above the first lane of a rank, for its name
const TOP = 22; // pixels of the ruler
const OPEN_DEPTHS = 4; // rows of a thread that are shown before it is opened
const GUTTER = 150; // pixels left of the slices, for the names of lanes
const GUTTER_SHARE = 0.27; // of a narrow timeline, at most

/** Return the pixels left of the slices. */
export function gutterOf(width) {
  return Math.min(GUTTER, Math.round(GUTTER_SHARE * width));
}

/** Return the top of every row (-1 where closed), of every lane and rank, and the whole height; pixels. */
export function layoutOf(model, open) {
  const layout = { top: new Float64Array(model.rows.length).fill(-1), lanes: [], ranks: [], row: ROW, ruler: TOP };
  let y = 0;
  let rank = null;
  let row = 0;
  model.lanes.forEach((lane, number) => {
    if (lane.rank !== rank) {
      rank = lane.rank;
      layout.ranks.push({ rank, top: y });
      y += HEAD;
    }
    const shown = Math.min(lane.rows.length, depthsOf(lane, open.get(number)));
    layout.lanes.push({ number, rank: layout.ranks.length - 1, top: y, bottom: y + shown * ROW, hidden: lane.rows.length - shown });
    for (let depth = 0; depth < lane.rows.length; depth++, row++) if (depth < shown) layout.top[row] = y + depth * ROW;
    y += shown * ROW + 3;
  });
  layout.height = y;
  return layout;
}

function depthsOf(lane, isOpen) {
  if (isOpen === true) return Infinity;
  if (isOpen === false) return 1;
  return lane.device ? Infinity : OPEN_DEPTHS;
}
