// What the graph knows of the selected slice: what it waited for, what waited for it, its slack and its gain.
import { rowOf } from "./model.js";
import { followersOf, unlistedOf, waitsOf } from "./walk.js";
import { made, timeText } from "./words.js";

const MOST_LISTED = 12; // predecessors or successors, before the list is opened

/** Return the elements of what the graph knows of the selected slice. */
export function knownOf(state) {
  const { model, selected: slice } = state;
  if (!model.walks) return [];
  const list = made("dl", undefined, "known");
  const moments = [2 * slice, 2 * slice + 1];
  const waits = moments.map((moment) => waitsOf(model, moment));
  moments.forEach((moment, end) => {
    const sentence = decidedBy(state, moment, waits[end]);
    if (sentence) list.append(made("dt", end ? "ended" : "began"), made("dd", sentence));
  });
  for (const [word, text] of prospectsOf(model, slice)) list.append(made("dt", word), made("dd", text));
  const before = waits.flatMap((each, end) => each.filter(({ own }) => !own).map((wait) => ({ ...wait, end })));
  const after = moments.flatMap((moment, end) => followersOf(model, moment).map((wait) => ({ ...wait, end })));
  const columns = made("div", [walkTable(state, "It waited for", before, true), walkTable(state, "Waited for it", after, false)], "columns");
  return [list, columns];
}

/** Return what decided when a moment came, as parts of a sentence; null for an end that only its own work decided. */
function decidedBy(state, moment, waits) {
  const { model } = state;
  const { late, lateWhy } = model.walks;
  const parts = [];
  const decider = waits[0]?.binds ? waits[0] : null;
  if (!decider || decider.own) {
    const word = decider ? "its own work" : unlistedOf(model, moment) || "what meets there";
    if (moment & 1 && word === "its own work" && !late[moment]) return null;
    parts.push(moment & 1 ? `as long as ${word} took` : `after ${word}`);
  } else {
    const others = waits.filter((each) => !each.binds).map((each) => each.spare);
    const waited = others.length ? Math.max(0, Math.min(...others)) : 0;
    parts.push("when ", walkButton(state, decider.moment), ` ${wordOf(model, decider)}`);
    parts.push(decider.lag ? `, plus ${timeText(decider.lag)}` : "");
    if (waited) parts.push(`; waited ${timeText(waited)} for it alone`);
  }
  if (late[moment]) parts.push(`; ${timeText(late[moment])} later than that: ${spaced(model.gapKinds[lateWhy[moment]])}`);
  return parts;
}

/** Return which end of an activity a dependency comes from, and its kind. */
function wordOf(model, { moment, kind }) {
  return `${moment & 1 ? "ended" : "began"} (${spaced(model.edgeKinds[kind])})`;
}

function spaced(word) {
  return word.replaceAll("_", " ");
}

/** Return [word, text] of the slack and the gain of a slice. */
function prospectsOf(model, slice) {
  const { slack, gain, gainLeast } = model.walks;
  if (!slack[slice]) return [];
  const later = slack[slice] - 1;
  const earlier = gain[slice] - 1;
  return [
    ["slack", later ? `${timeText(later)}: it may end so much later, and the job ends when it does now` : "none: later, the job ends later"],
    ["gain", earlier ? `${gainLeast[slice] ? "at least " : ""}${timeText(earlier)}: the job is so much shorter if it takes no time` : "none, even if it takes no time"],
  ];
}

/** Return a button that goes to the activity of a moment. */
function walkButton(state, moment) {
  const { model } = state;
  const slice = moment >> 1;
  const lane = model.lanes[model.rows[rowOf(model, slice)].lane];
  const button = made("button", `${model.short[model.name[slice]].slice(0, 60)} · rank ${lane.rank}`, "walk");
  button.type = "button";
  button.title = `${model.names[model.name[slice]].slice(0, 300)}, rank ${lane.rank}, ${lane.label}`;
  button.addEventListener("click", () => state.goTo(slice));
  return button;
}

/** Return a table of predecessors or successors, of many the first until it is opened. */
function walkTable(state, title, waits, isBefore) {
  if (!waits.length) return made("p", `${title}: nothing that is drawn.`, "hint");
  const heads = ["", "activity", isBefore ? "its" : "their", "kind", "lag", isBefore ? "spare" : ""];
  const note = isBefore ? "● decided it; spare: so much later it came than that alone allows" : "● decided them";
  const table = made("table", made("caption", `${title} (${waits.length}; ${note})`), "walks");
  table.append(made("tr", heads.map((each) => made("th", each))));
  const rows = waits.map((wait) => walkRow(state, wait, isBefore));
  table.append(...rows.slice(0, MOST_LISTED));
  const more = rows.slice(MOST_LISTED);
  if (!more.length) return made("div", table, "wide");
  const button = made("button", `${more.length} more`, "more-walks");
  button.type = "button";
  button.addEventListener("click", () => {
    table.append(...more);
    button.remove();
  });
  return made("div", [table, button], "wide");
}

function walkRow(state, wait, isBefore) {
  const { model } = state;
  const end = isBefore ? wait.end : wait.moment & 1;
  const button = walkButton(state, wait.moment);
  const cells = [
    wait.binds ? "●" : "", button, end ? "end" : "start", spaced(model.edgeKinds[wait.kind]),
    wait.lag ? timeText(wait.lag) : "0", isBefore && !wait.binds ? timeText(wait.spare) : "",
  ];
  return made("tr", cells.map((each) => made("td", each)));
}
