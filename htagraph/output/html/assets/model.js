// The slices of a job: times in ns since its start, in rows that do not overlap.
import { columnsIn, dataOf, jsonOf, summed } from "./payload.js";

/** Return the model of a timeline with what its slices need; `addMarks` and `addFacts` unpack the rest. */
export async function modelOf(key) {
  const header = jsonOf(dataOf(`${key}-header`));
  const column = columnsIn(`${key}-data`, header.columns);
  const rows = rowsOf(header.lanes);
  const model = { ...header, column, rows, count: rows.at(-1)?.last ?? 0, path: NO_PATH, members: NO_MEMBERS, steps: [] };
  model.names = jsonOf(await column("names"));
  model.short = model.names.map((name, i) => header.shortNames[i] ?? name);
  model.kindOf = await column("kindOf");
  model.name = new Uint32Array(await column("name"));
  Object.assign(model, timesOf(rows, await column("gap"), await column("duration")));
  return model;
}

const NO_PATH = { start: [], end: [], slice: [], category: [], row: { first: 0, last: 0 } };
const NO_MEMBERS = { slice: [], first: [0], from: [], until: [] };

/** Unpack what is drawn over the slices: steps, collectives, the critical path. */
export async function addMarks(model) {
  const { column } = model;
  model.steps = stepsOf(model);
  model.members = membersOf(model, summed(await column("memberSlice")), summed(await column("memberOf")));
  const [row, step, late] = [await column("pathRow"), await column("pathStep"), await column("pathLate")];
  model.path = { ...pathOf(model, row, step, late), category: new Uint8Array(await column("pathCategory")) };
}

/** Unpack what is told about a slice; the numbers of activities come last: with them, all is there. */
export async function addFacts(model) {
  const { column } = model;
  model.stepNumber = new Int32Array(summed(await column("stepNumber")));
  model.values = [];
  for (const name of model.arguments) {
    const [at, is] = [summed(await column(`${name}At`)), await column(`${name}Is`)];
    model.values.push({ name, at, is, texts: model.textArguments[name] });
  }
  const activity = new Int32Array(summed(await column("activity")));
  model.launch = launchesOf(model, activity, summed(await column("launch")));
  model.activity = activity;
}

/** Return rows from top to bottom: each has its lane, depth, first slice and end. */
function rowsOf(lanes) {
  const rows = [];
  let first = 0;
  lanes.forEach((lane, number) => {
    lane.first = first;
    lane.firstRow = rows.length;
    lane.rows.forEach((count, depth) => {
      rows.push({ lane: number, depth, first, last: first + count });
      first += count;
    });
    lane.last = first;
  });
  return rows;
}

/** Return the start and the end of each slice, from the time since the slice before it ended, and its duration. */
function timesOf(rows, gap, duration) {
  const [start, end] = [gap, duration]; // each in the place of the other, as there are many
  for (const { first, last } of rows) {
    let at = 0;
    for (let i = first; i < last; i++) {
      start[i] = at += gap[i];
      end[i] = at += duration[i];
    }
  }
  return { start, end };
}

/** Return the slice of the call that launched each slice, -1 for none. */
function launchesOf({ lanes, count }, activity, callers) {
  const sliceOf = new Int32Array(activity.reduce((most, each) => Math.max(most, each), 0) + 1).fill(-1);
  for (let i = 0; i < count; i++) sliceOf[activity[i]] = i;
  const launch = new Int32Array(count).fill(-1);
  let at = 0;
  for (const { device, first, last } of lanes) {
    if (!device) continue;
    for (let i = first; i < last; i++) launch[i] = sliceOf[callers[at++]] ?? -1;
  }
  return launch;
}

/** Return the stretches of the critical path, as `_path` in timeline.py describes their columns. */
function pathOf(model, row, step, late) {
  const bounds = new Float64Array(row.length + 1);
  const slice = new Int32Array(row.length).fill(-1);
  const latest = model.rows.map(({ first }) => first);
  let at = model.pathStart;
  for (let i = 0; i < row.length; i++) {
    bounds[i] = at;
    if (row[i] > 0) {
      const shown = (latest[row[i] - 1] += step[i]);
      slice[i] = shown;
      at = model.start[shown] > at ? model.start[shown] : model.end[shown];
    }
    at += late[i];
  }
  bounds[row.length] = at;
  return { start: bounds.subarray(0, -1), end: bounds.subarray(1), slice, row: { first: 0, last: row.length } };
}

/** Return the members of collectives: those of collective i are from first[i] up to first[i + 1], if there are any. */
function membersOf({ start, end, collectives }, slices, of) {
  const count = collectives.length;
  const members = {
    slice: [], first: new Int32Array(count + 1), from: new Float64Array(count).fill(Infinity),
    until: new Float64Array(count).fill(-Infinity),
  };
  let at = 0;
  for (let i = 0; i < count; i++) {
    for (; of[at] === i; at++) {
      if (slices[at] < 0) continue;
      members.slice.push(slices[at]);
      members.from[i] = Math.min(members.from[i], start[slices[at]]);
      members.until[i] = Math.max(members.until[i], end[slices[at]]);
    }
    members.first[i + 1] = members.slice.length;
  }
  return members;
}

/** Return the slices of steps, by lane. */
function stepsOf({ count, kindOf, name, step }) {
  const steps = [];
  for (let i = 0; i < count; i++) if (kindOf[name[i]] === step) steps.push(i);
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
