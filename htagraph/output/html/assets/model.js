// The slices of a job: times in ns since its start, in rows that do not overlap.
import { columnsOf, dataOf, jsonOf, summed, unzipped } from "./payload.js";

/** Return the model of a timeline. */
export async function modelOf(key) {
  const header = jsonOf(dataOf(`${key}-header`));
  const columns = columnsOf(header.columns, await unzipped(dataOf(`${key}-data`)));
  const count = columns.gap.length;
  const model = { ...header, count, names: columns.names, name: columns.name, kind: columns.kind };
  model.short = columns.names.map((name, i) => header.shortNames[i] ?? name);
  model.rows = rowsOf(header.lanes);
  model.start = startsOf(model.rows, columns.gap, columns.duration);
  model.duration = columns.duration;
  model.end = columns.duration.map((lasted, i) => model.start[i] + lasted);
  model.activity = summed(columns.activity);
  model.stepNumber = summed(columns.stepNumber);
  model.launch = launchesOf(model, summed(columns.launch));
  model.path = pathOf(header, columns);
  model.members = membersOf(model, columns);
  model.values = argumentsOf(header, columns);
  model.steps = stepsOf(model);
  return model;
}

/** Return rows from top to bottom: each has its lane, depth, first slice and end. */
function rowsOf(lanes) {
  const rows = [];
  let first = 0;
  lanes.forEach((lane, number) => {
    lane.first = first;
    lane.rows.forEach((count, depth) => {
      rows.push({ lane: number, depth, first, last: first + count });
      first += count;
    });
    lane.last = first;
  });
  return rows;
}

function startsOf(rows, gap, duration) {
  const start = new Float64Array(gap.length);
  for (const { first, last } of rows) {
    let end = 0;
    for (let i = first; i < last; i++) {
      start[i] = end + gap[i];
      end = start[i] + duration[i];
    }
  }
  return start;
}

/** Return the slice of the call that launched each slice, -1 for none. */
function launchesOf(model, causes) {
  const sliceOf = new Map();
  const launch = new Int32Array(model.count).fill(-1);
  const wanted = new Set(causes);
  for (let i = 0; i < model.count; i++) if (wanted.has(model.activity[i])) sliceOf.set(model.activity[i], i);
  let at = 0;
  for (const lane of model.lanes) {
    if (!lane.device) continue;
    for (let i = lane.first; i < lane.last; i++) launch[i] = sliceOf.get(causes[at++]) ?? -1;
  }
  return launch;
}

function pathOf(header, columns) {
  const length = columns.pathLength;
  const start = new Float64Array(length.length);
  let at = header.pathStart;
  for (let i = 0; i < length.length; i++) {
    start[i] = at;
    at += length[i];
  }
  const end = start.map((moment, i) => moment + length[i]);
  return { start, end, slice: summed(columns.pathSlice), category: columns.pathCategory, edge: columns.pathEdge };
}

/** Return the members of each collective, as slices. */
function membersOf(model, columns) {
  const slices = summed(columns.memberSlice);
  const of = summed(columns.memberOf);
  const members = [];
  slices.forEach((slice, i) => {
    if (slice >= 0) (members[of[i]] ??= []).push(slice);
  });
  for (const each of members) {
    if (!each) continue;
    each.from = Math.min(...each.map((slice) => model.start[slice]));
    each.until = Math.max(...each.map((slice) => model.end[slice]));
  }
  return members;
}

/** Return each argument's values by slice. */
function argumentsOf(header, columns) {
  return header.arguments.map((name) => {
    const at = summed(columns[`${name}At`]);
    const is = columns[`${name}Is`];
    const texts = header.textArguments[name];
    const values = new Map();
    at.forEach((slice, i) => values.set(slice, texts ? texts[is[i]] : is[i]));
    return { name, values };
  });
}

/** Return the slices of steps, by lane. */
function stepsOf(model) {
  const steps = [];
  for (let i = 0; i < model.count; i++) if (model.kind[i] === model.step) steps.push(i);
  return steps;
}

/** Return the row that holds a slice. */
export function rowOf(model, slice) {
  let low = 0;
  let high = model.rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (model.rows[middle].first <= slice) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return the first slice of a row that ends after a moment. */
export function firstAfter(end, moment, first, last) {
  let low = first;
  let high = last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle] > moment) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Return the slice of an activity, -1 if it is not shown. */
export function sliceOfActivity(model, activity) {
  return model.activity.indexOf(activity);
}
