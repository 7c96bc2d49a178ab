// The area that was dragged: its frame and its sums.
import { collectivesIn, sumsOf } from "./busy.js";
import { exactText, made, timeText } from "./words.js";

const MOST_COLLECTIVES = 8; // of an area, the longest

/** Return the area between two points of the canvas; a drag along the ruler is of all rows in view. */
export function areaBetween(state, one, other) {
  const moment = (x) => state.view.from + (Math.max(x, state.left) - state.left) / state.view.scale;
  const times = [moment(one.x), moment(other.x)].sort((a, b) => a - b).map(Math.round);
  const isRuler = one.y < state.layout.ruler;
  const top = isRuler ? 0 : Math.min(one.y, other.y);
  const bottom = isRuler ? state.height : Math.max(one.y, other.y);
  const rows = [];
  for (let row = 0; row < state.model.rows.length; row++) {
    const y = state.rowY(row);
    if (y !== null && y + state.layout.row > Math.max(top, state.layout.ruler) && y < bottom) rows.push(row);
  }
  return { from: times[0], to: times[1], rows };
}

/** Fill the panel of an area. */
export function fillArea(panel, state) {
  const { model, area } = state;
  panel.hidden = !area;
  if (!area) return;
  const sums = sumsOf(model, area);
  const whole = sums.length * sums.lanes;
  const share = (time) => (whole ? `${((100 * time) / whole).toFixed(1)} %` : "");
  const close = made("button", "Close", "close");
  close.type = "button";
  close.addEventListener("click", () => state.choose(null));
  const lanes = `${sums.lanes} ${sums.lanes === 1 ? "stream or thread" : "streams and threads"}`;
  const title = `Area: ${timeText(sums.length)} from ${exactText(area.from)}, ${lanes}, busy ${share(sums.busy)}`;
  const table = made("table", made("caption", "Time in which a stream or thread has such slices, summed"));
  table.append(made("tr", ["kind", "number", "time", "share"].map((each) => made("th", each))));
  for (const { kind, count, time } of sums.kinds) {
    const cells = [kind.replaceAll("_", " "), count.toLocaleString("en"), timeText(time), share(time)];
    table.append(made("tr", cells.map((each) => made("td", each))));
  }
  panel.replaceChildren(made("h4", title), close, made("div", [made("div", table, "wide"), collectiveList(state)], "columns"));
}

/** Return a list of the longest collectives in an area, which lead to their first member. */
function collectiveList({ model, area, key }) {
  if (!model.activity) return null; // the numbers of activities come last
  const items = collectivesIn(model, area.from, area.to, MOST_COLLECTIVES).map((number) => {
    const { slice, first, from, until } = model.members;
    const link = made("a", model.collectives[number]);
    link.href = `#on=${key}&event=${model.activity[slice[first[number]]]}`;
    return made("li", [link, ` ${first[number + 1] - first[number]} members, ${timeText(until[number] - from[number])}`]);
  });
  return items.length ? made("div", [made("p", "The longest collectives in it", "hint"), made("ul", items)]) : null;
}

/** Draw the frame of the area, or of the one that is being dragged. */
export function drawArea(ctx, state) {
  const area = state.dragged ?? state.area;
  if (!area) return;
  const left = Math.max(state.x(area.from), state.left);
  const right = Math.min(state.x(area.to), state.left + state.span);
  if (right <= left) return;
  ctx.fillStyle = state.ink.ink;
  const tops = area.rows.map((row) => state.rowY(row)).filter((y) => y !== null);
  for (const y of tops) {
    ctx.globalAlpha = 0.18;
    ctx.fillRect(left, y, right - left, state.layout.row);
    ctx.globalAlpha = 1;
    for (const x of [left, right]) ctx.fillRect(Math.round(x) - 0.5, y, 1.5, state.layout.row);
  }
}
