// The dependencies between slices. A place is a slice or, behind the slices, an activity that the graph added, where
// other activities meet; 2 * place is the moment of its start, 2 * place + 1 of its end.
import { summed } from "./payload.js";

const OWN_WORK = 1; // as in walks.py
const FIRST_LISTED = 3;
const MOST_MET = 64; // activities that are listed through one where they meet

/** Unpack dependencies, slack and gain. */
export async function addWalks(model) {
  const { column } = model;
  const count = await column("waits");
  const first = new Uint32Array(count.length + 1);
  first.set(summed(count), 1);
  const from = new Uint32Array(await column("waitFrom"));
  for (let moment = 0; moment < first.length - 1; moment++) {
    for (let i = first[moment]; i < first[moment + 1]; i++) from[i] += moment; // which wraps around, as numbers below 0 do
  }
  const walks = { first, from, kind: await column("waitKind"), lag: await column("waitLag") };
  for (const name of ["decided", "late", "lateWhy", "slack", "gain", "gainLeast"]) walks[name] = await column(name);
  addBindingLags(model, walks);
  model.walks = { ...walks, ...followersIn(walks) };
}

/** Add the lags of binding dependencies, which the page does not hold: they follow from the moments. */
function addBindingLags(model, { first, from, lag, decided, late }) {
  for (let moment = 0; moment < decided.length; moment++) {
    const i = first[moment] + decided[moment] - FIRST_LISTED;
    if (i >= first[moment]) lag[i] = timeAt(model, moment) - late[moment] - timeAt(model, from[i]);
  }
}

/** Return the dependencies by the moment that they come from: follow[followFirst[m]] is the first of moment m. */
function followersIn({ first, from }) {
  const followFirst = new Uint32Array(first.length);
  for (let i = 0; i < from.length; i++) followFirst[from[i] + 1]++;
  for (let i = 1; i < followFirst.length; i++) followFirst[i] += followFirst[i - 1];
  const next = followFirst.slice();
  const follow = new Uint32Array(from.length);
  const to = new Uint32Array(from.length);
  for (let moment = 0; moment < first.length - 1; moment++) {
    for (let i = first[moment]; i < first[moment + 1]; i++) {
      to[i] = moment;
      follow[next[from[i]]++] = i;
    }
  }
  return { followFirst, follow, to };
}

/** Return when a moment is, ns. */
export function timeAt(model, moment) {
  const place = moment >> 1;
  if (place >= model.count) return model.addedMoments[moment - 2 * model.count];
  return moment & 1 ? model.end[place] : model.start[place];
}

/**
 * Return what a moment waited for, what decided it first: {moment, kind, lag, binds, spare}. `spare` is how much later
 * it came than that alone allows, ns. Where activities meet, what meets there is listed.
 */
export function waitsOf(model, moment) {
  const { first, from, kind, lag, decided, late } = model.walks;
  const found = [];
  const add = (at, inner, binding, through) => {
    for (let i = first[at]; i < first[at + 1]; i++) {
      const binds = binding && decided[at] === FIRST_LISTED + i - first[at];
      if (found.length >= MOST_MET && !binds) continue; // the one that decided is always listed
      const whole = inner + lag[i];
      const own = from[i] >> 1 === moment >> 1;
      if (from[i] >> 1 >= model.count) met(from[i], whole, binds, through ?? kind[i]);
      else found.push({ moment: from[i], kind: through ?? kind[i], lag: whole, binds, own });
    }
  };
  const met = (at, whole, binds, through) => { // an end only waits for its start
    const start = at & ~1;
    for (const each of new Set([start, at])) add(each, whole + (each === at ? late[at] : 0), binds, through);
  };
  add(moment, 0, true, null);
  const allowed = timeAt(model, moment) - late[moment];
  for (const each of found) each.spare = allowed - timeAt(model, each.moment) - each.lag;
  return found.sort((a, b) => b.binds - a.binds || a.spare - b.spare);
}

/** Return what waited for a moment, what it decided first: {moment, kind, lag, binds}. */
export function followersOf(model, moment) {
  const { followFirst, follow, to, kind, lag, decided, first } = model.walks;
  const found = [];
  const add = (at, inner, binding, through) => {
    for (let place = followFirst[at]; place < followFirst[at + 1] && found.length < MOST_MET; place++) {
      const i = follow[place];
      const next = to[i];
      const binds = binding && decided[next] === FIRST_LISTED + i - first[next];
      const whole = inner + lag[i];
      if (next >> 1 === moment >> 1) continue;
      if (next >> 1 < model.count) found.push({ moment: next, kind: through ?? kind[i], lag: whole, binds });
      else for (const each of new Set([next, next | 1])) add(each, whole, binds, through ?? kind[i]);
    }
  };
  add(moment, 0, true, null);
  return found.sort((a, b) => b.binds - a.binds || timeAt(model, a.moment) - timeAt(model, b.moment));
}

/** Return what decided a moment without being listed, in words; empty where it is listed. */
export function unlistedOf(model, moment) {
  const code = model.walks.decided[moment];
  if (code === OWN_WORK) return "its own work";
  if (code >= FIRST_LISTED) return "";
  return code ? "an activity that is not drawn" : "nothing that was recorded";
}
