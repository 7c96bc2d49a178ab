// The view in the page's address: what is shown, selected, chosen and pinned.

/** Return the address of what a timeline shows. */
export function addressOf(state) {
  const { model, view, span, key, selected, area, pins, order } = state;
  const parts = [`on=${key}`, `from=${Math.round(view.from)}`, `to=${Math.round(view.from + span / view.scale)}`];
  if (view.y > 0) parts.push(`down=${Math.round(view.y)}`);
  if (selected >= 0) parts.push(`event=${model.activity[selected]}`);
  if (pins.length) parts.push(`pin=${pins.join(".")}`);
  if (order !== "rank") parts.push(`order=${order}`);
  if (area) parts.push(`area=${area.from}.${area.to}.${rangesOf(area.rows)}`);
  return `#${parts.join("&")}&view=1`;
}

/** Return increasing numbers as ranges: 0-3_7-7. */
function rangesOf(numbers) {
  const ranges = [];
  for (const number of numbers) {
    if (ranges.length && ranges.at(-1)[1] === number - 1) ranges.at(-1)[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map((range) => range.join("-")).join("_");
}

/** Return what an address asks for; numbers that are none, and rows and lanes that there are not, are left out. */
export function wantedBy(hash, { rows, lanes }) {
  const words = new URLSearchParams(hash.slice(1));
  const number = (name) => (words.has(name) && Number.isFinite(Number(words.get(name))) ? Number(words.get(name)) : null);
  const pins = (words.get("pin") ?? "").split(".").filter((each) => /^\d+$/.test(each)).map(Number);
  return {
    key: words.get("on"), from: number("from"), to: number("to"), down: number("down"), activity: number("event"),
    exact: words.has("view") && number("from") !== null && number("to") !== null,
    pins: [...new Set(pins)].filter((pin) => pin < lanes.length),
    order: words.get("order") === "busy" ? "busy" : "rank", area: areaOf(words.get("area"), rows.length),
  };
}

function areaOf(text, rowCount) {
  const [from, to, ranges] = (text ?? "").split(".");
  if (!ranges || !/^-?\d+$/.test(from) || !/^-?\d+$/.test(to)) return null;
  const rows = new Set();
  for (const range of ranges.split("_")) {
    const [first, last] = range.split("-").map(Number);
    for (let row = first; row <= Math.min(last, rowCount - 1); row++) rows.add(row);
  }
  const isSpan = Number(from) < Number(to) && rows.size > 0;
  return isSpan ? { from: Number(from), to: Number(to), rows: [...rows] } : null;
}
