// What is known of a slice, as elements.
import { knownOf } from "./known.js";
import { firstAfter, rowOf } from "./model.js";
import { exactText, made, timeText } from "./words.js";

/** Return [word, text] of what is known of a slice. */
export function factsOf(model, slice) {
  const row = model.rows[rowOf(model, slice)];
  const lane = model.lanes[row.lane];
  const lasted = model.end[slice] - model.start[slice];
  const facts = [
    ["duration", `${timeText(lasted)} (${exactText(lasted)})`],
    ["start", exactText(model.start[slice])],
    ["rank", `${lane.rank}, ${lane.label}`],
    ["step", model.stepNumber[slice] < 0 ? "outside steps" : String(model.stepNumber[slice])],
    ["kind", model.kinds[model.kindOf[model.name[slice]]].replace("_", " ")],
    ["critical", timeText(criticalOf(model, slice))],
  ];
  if (criticalOf(model, slice) === 0) facts.pop();
  for (const { name, at, is, texts } of model.values) {
    const i = firstAfter(at, slice - 1, 0, at.length);
    if (at[i] === slice) facts.push([name, String(texts ? texts[is[i]] : is[i])]);
  }
  facts.push(["activity", String(model.activity[slice])]);
  return facts;
}

/** Return how long the critical path is on a slice, ns. */
function criticalOf(model, slice) {
  const { start, end, slice: places } = model.path;
  let total = 0;
  let i = firstAfter(end, model.start[slice], 0, start.length);
  for (; i < start.length && start[i] < model.end[slice]; i++) if (places[i] === slice) total += end[i] - start[i];
  return total;
}

/** Fill the tooltip of a slice. */
export function fillTip(tip, model, slice) {
  tip.replaceChildren(made("b", model.names[model.name[slice]].slice(0, 300)));
  for (const [word, text] of factsOf(model, slice)) tip.append(made("div", [made("span", word), ` ${text.slice(0, 200)}`]));
}

/** Fill the panel of the selected slice. */
export function fillSelected(panel, state) {
  const { model, selected: slice } = state;
  const list = made("dl");
  for (const [word, text] of factsOf(model, slice)) list.append(made("dt", word), made("dd", text));
  const inside = aroundOf(model, slice);
  if (inside.length) list.append(made("dt", "inside"), made("dd", linked(state, inside, " › ")));
  const others = state.launches.map((pair) => (pair[0] === slice ? pair[1] : pair[0]));
  if (others.length) {
    const word = state.launches[0][0] === slice ? "launched" : "launched by";
    list.append(made("dt", word), made("dd", linked(state, others.slice(0, 20), ", ")));
  }
  panel.replaceChildren(made("h4", model.names[model.name[slice]]), ...knownOf(state), list);
  if (model.events) {
    const link = made("a", "all arguments and dependencies");
    link.href = `${model.events}${model.activity[slice]}`;
    list.append(made("dt", "recorded"), made("dd", link));
  }
  const members = membersWith(model, slice);
  if (members) panel.append(memberTable(state, members));
}

/** Return the slices around a slice on its lane, the outermost first. */
function aroundOf(model, slice) {
  const at = rowOf(model, slice);
  const around = [];
  for (let row = at - model.rows[at].depth; row < at; row++) {
    const { first, last } = model.rows[row];
    const i = firstAfter(model.end, model.start[slice], first, last);
    if (i < last && model.start[i] <= model.start[slice]) around.push(i);
  }
  return around;
}

function linked(state, slices, between) {
  const parts = [];
  slices.forEach((slice, i) => {
    if (i) parts.push(between);
    const link = made("a", state.model.names[state.model.name[slice]].slice(0, 120));
    link.href = `#on=${state.key}&event=${state.model.activity[slice]}`;
    parts.push(link);
  });
  return parts;
}

function membersWith(model, slice) {
  const { slice: members, first } = model.members;
  const at = members.indexOf(slice);
  if (at < 0) return null;
  const number = firstAfter(first, at, 0, first.length) - 1;
  return { word: model.collectives[number], slices: members.slice(first[number], first[number + 1]) };
}

/** Return a table of the members of a collective: who arrived when. */
function memberTable(state, { word, slices }) {
  const { model } = state;
  const last = Math.max(...slices.map((each) => model.start[each]));
  const table = made("table", made("caption", `${word}: ${slices.length} members, the last to arrive last`));
  table.append(made("tr", ["rank", "arrives", "before the last", "duration"].map((each) => made("th", each))));
  for (const slice of [...slices].sort((a, b) => model.start[a] - model.start[b])) {
    const lane = model.lanes[model.rows[rowOf(model, slice)].lane];
    const link = made("a", `rank ${lane.rank}`);
    link.href = `#on=${state.key}&event=${model.activity[slice]}`;
    const cells = [link, exactText(model.start[slice]), timeText(last - model.start[slice]), timeText(model.end[slice] - model.start[slice])];
    table.append(made("tr", cells.map((each) => made("td", each))));
  }
  return table;
}
