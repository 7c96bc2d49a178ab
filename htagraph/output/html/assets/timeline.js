// A timeline in its place: state, selection, search, links.
import { addFacts, addMarks, firstAfter, modelOf, rowOf, sliceOfActivity } from "./model.js";
import { addressOf, wantedBy } from "./address.js";
import { fillArea } from "./area.js";
import { gutterOf, laneAt, layoutOf, rowYOf } from "./layout.js";
import { colorsOf, fromHex, inkOf, mixed } from "./colors.js";
import { draw } from "./draw.js";
import { fillSelected, fillTip } from "./details.js";
import { countFound, namesWith, nextFound } from "./find.js";
import { listen, settle, show, showExactly } from "./moves.js";
import { starts } from "./page.js";
import { addWalks } from "./walk.js";
import { made, timeText } from "./words.js";

const REST_MS = 400; // without a move, before the address says what is shown
const BESIDE = 0.75; // of a slice's length: what is shown on both sides of one that a link leads to

starts.push(startTimelines);

/** Start every timeline of the page: first the slices of all, then what is over them, then what is told about them. */
export async function startTimelines() {
  const states = [];
  for (const place of document.querySelectorAll(".timeline")) {
    states.push(await stateOf(place));
    show(states.at(-1), 0, states.at(-1).model.whole);
    await new Promise(requestAnimationFrame);
  }
  for (const state of states) {
    await addMarks(state.model);
    state.changed();
  }
  for (const state of states) {
    await addFacts(state.model);
    await addWalks(state.model);
    addEventListener("hashchange", () => follow(state));
    addEventListener("click", ({ target }) => { // of a link to where the address points already, browsers tell nothing
      if (target.closest?.("a")?.hash === location.hash && location.hash) follow(state);
    });
    follow(state);
    state.follows = true;
    state.place.dataset.ready = "yes";
  }
}

async function stateOf(place) {
  const canvas = place.querySelector("canvas");
  place.querySelector(".waiting").hidden = true;
  const model = await modelOf(place.dataset.key);
  const state = {
    place, canvas, model, key: place.dataset.key, ctx: canvas.getContext("2d", { alpha: false }), view: { from: 0, scale: 1, y: 0 },
    open: new Map(), pins: [], order: "rank", area: null, dragged: null, full: colorsOf(model), selected: -1, launches: [], found: null, showPath: true, showCollectives: true, left: 0,
    findBox: place.querySelector(".find"), tip: place.querySelector(".tip"), range: place.querySelector(".range"), drawn: 0,
  };
  Object.assign(state, actionsOf(state));
  lay(state);
  fitHeight(state);
  control(state);
  listen(state);
  resize(state);
  dress(state);
  for (const query of ["print", "(prefers-color-scheme: dark)"]) {
    matchMedia(query).addEventListener("change", () => {
      dress(state);
      draw(state); // at once: paper does not wait for the next frame
    });
  }
  new ResizeObserver(() => resize(state)).observe(place.querySelector(".stage"));
  return state;
}

function actionsOf(state) {
  return {
    x: (moment) => state.left + (moment - state.view.from) * state.view.scale,
    changed: () => changed(state),
    select: (slice) => select(state, slice),
    hover: (slice, x, y) => hover(state, slice, x, y),
    sliceAt: (x, y) => sliceAt(state, x, y),
    rowY: (row) => rowYOf(state, row),
    goTo: (slice) => bringIntoView(state, slice),
    choose: (area) => choose(state, area),
    enter: () => enter(state),
    pin: (lane) => pin(state, lane),
    pinSelected: () => { if (state.selected >= 0) pin(state, state.model.rows[rowOf(state.model, state.selected)].lane); },
    toggle: (y) => toggle(state, y),
    next: () => next(state),
    beside: (by) => beside(state, by),
    isFaint: (slice) => state.found !== null && !state.found[state.model.name[slice]],
  };
}

/** Place rows and lanes anew. */
function lay(state) {
  state.layout = layoutOf(state.model, state);
}

/** Draw once before the next frame, and let the address say what is shown when nothing moves any more. */
function changed(state) {
  settle(state);
  clearTimeout(state.resting);
  if (state.follows) state.resting = setTimeout(() => history.replaceState(null, "", addressOf(state)), REST_MS);
  if (state.waiting) return;
  state.waiting = true;
  requestAnimationFrame(() => {
    state.waiting = false;
    draw(state);
    state.drawn++;
  });
}

/** Make the canvas as high as its rows, within most of the window. */
function fitHeight(state) {
  const wanted = state.layout.height + state.layout.head + 4;
  state.canvas.parentElement.style.height = `${Math.max(120, Math.min(wanted, 0.72 * innerHeight))}px`;
}

function resize(state) {
  if (matchMedia("print").matches) return; // paper shrinks the picture, letters and all
  const { canvas } = state;
  const box = canvas.parentElement.getBoundingClientRect();
  const before = state.span;
  state.ratio = window.devicePixelRatio || 1;
  state.width = box.width;
  state.height = box.height;
  state.left = gutterOf(box.width);
  state.span = Math.max(box.width - state.left, 50);
  canvas.width = Math.round(box.width * state.ratio);
  canvas.height = Math.round(box.height * state.ratio);
  if (before) state.view.scale *= state.span / before;
  changed(state);
}

/** Take the colors of the page's style. */
function dress(state) {
  const { model, place } = state;
  const of = (name) => inkOf(place, name);
  state.ink = {
    ink: of("--ink"), rank: of("--muted"), name: of("--slice-ink"), faint: of("--faint"), path: of("--path"),
    step: of("--muted"), paper: of("--paper"),
  };
  state.paper = fromHex(state.ink.paper);
  state.joinedColor = fromHex(of("--joined"));
  state.pathColor = fromHex(state.ink.path);
  state.categoryColors = model.categories.map((category) => fromHex(of(`--${category.replace("_", "-")}`) || "#888888"));
  tint(state);
  changed(state);
}

/** Let the colors of names show what a search found. */
function tint(state) {
  const { full, found, paper } = state;
  state.colors = found ? full.map((color, name) => (found[name] ? color : mixed(color, paper))) : full;
}

function sliceAt(state, x, y) {
  const { model, layout, view } = state;
  if (!model.activity) return -1;
  if (x < state.left || y < layout.ruler) return -1;
  const isHere = (row) => {
    const top = state.rowY(row);
    return top !== null && y >= top && y < top + layout.row && (layout.fixed[row] === 1) === y < layout.head;
  };
  const row = model.rows.findIndex((_, number) => isHere(number));
  if (row < 0) return -1;
  const moment = view.from + (x - state.left) / view.scale;
  const near = 2 / view.scale;
  const { first, last } = model.rows[row];
  const at = firstAfter(model.end, moment - near, first, last);
  for (let i = at; i < last && model.start[i] <= moment + near; i++) if (model.end[i] >= moment) return i;
  return at < last && model.start[at] <= moment + near ? at : -1;
}

function select(state, slice) {
  if (!state.model.activity) return;
  state.selected = slice;
  state.launches = launchesWith(state.model, slice);
  if (slice >= 0) {
    fillSelected(state.place.querySelector(".selected"), state);
    const [before, now] = [wantedBy(location.hash, state.model), state.model.activity[slice]];
    if (before.key !== state.key || before.activity !== now) history.pushState(null, "", addressOf(state));
  } else {
    state.place.querySelector(".selected").replaceChildren(made("p", "Nothing is selected.", "hint"));
  }
  changed(state);
}

/** Return [launch, launched] pairs of a slice. */
function launchesWith(model, slice) {
  if (slice < 0) return [];
  if (model.launch[slice] >= 0) return [[model.launch[slice], slice]];
  const pairs = [];
  for (let i = 0; i < model.count && pairs.length < 200; i++) if (model.launch[i] === slice) pairs.push([slice, i]);
  return pairs;
}

function hover(state, slice, x, y) {
  const { tip } = state;
  tip.hidden = slice < 0;
  if (slice < 0) return;
  if (state.hovered !== slice) fillTip(tip, state.model, slice);
  state.hovered = slice;
  const right = x > state.width / 2;
  tip.style.left = right ? "" : `${x + 14}px`;
  tip.style.right = right ? `${state.width - x + 14}px` : "";
  tip.style.top = y > state.height / 2 ? "" : `${y + 14}px`;
  tip.style.bottom = y > state.height / 2 ? `${state.height - y + 14}px` : "";
}

/** Open or close the lane at a height. */
function toggle(state, y) {
  const lane = laneAt(state, y);
  if (!lane) return;
  state.open.set(lane.number, lane.hidden > 0);
  lay(state);
  changed(state);
}

/** Pin a lane on top, or let it go. */
function pin(state, lane) {
  state.pins = state.pins.includes(lane) ? state.pins.filter((each) => each !== lane) : [...state.pins, lane];
  lay(state);
  changed(state);
}

/** Sort lanes by rank or by busy time. */
function sort(state, order) {
  state.order = order;
  state.place.querySelector(".order").value = order;
  lay(state);
  changed(state);
}

/** Choose an area, or none. */
function choose(state, area) {
  [state.area, state.dragged] = [area, null];
  fillArea(state.place.querySelector(".area"), state);
  changed(state);
}

/** Select the first slice in view; of one that is selected already, go there. */
function enter(state) {
  const { model, selected } = state;
  if (selected < 0) beside(state, 1);
  else show(state, model.start[selected], model.end[selected]);
}

/** Go where the page's address points, if it points into this timeline; return whether it does. */
function follow(state) {
  const wanted = wantedBy(location.hash, state.model);
  if (wanted.key !== null && wanted.key !== state.key) return false;
  const slice = wanted.activity === null ? -1 : sliceOfActivity(state.model, wanted.activity);
  if (slice < 0 && wanted.from === null) return false;
  if (wanted.exact) restore(state, wanted);
  else lookAt(state, wanted, slice);
  if (slice >= 0) reveal(state, slice);
  else if (wanted.exact && state.selected >= 0) select(state, -1);
  state.place.scrollIntoView({ block: "nearest" });
  return true;
}

/** Show the place that a link leads to, with some room around it. */
function lookAt(state, wanted, slice) {
  const { start, end } = state.model;
  const beside = BESIDE * (end[slice] - start[slice]);
  if (wanted.from !== null) show(state, wanted.from, wanted.to);
  else show(state, start[slice] - beside, end[slice] + beside);
}

/** Show a view as its address says. */
function restore(state, wanted) {
  state.pins = wanted.pins;
  sort(state, wanted.order);
  showExactly(state, wanted.from, wanted.to);
  state.view.y = wanted.down ?? 0;
  choose(state, wanted.area);
}

/** Open the lane of a slice if need be, scroll to its row, and select it. */
function reveal(state, slice) {
  const row = rowOf(state.model, slice);
  if (state.layout.top[row] < 0) {
    state.open.set(state.model.rows[row].lane, true);
    lay(state);
  }
  const top = state.layout.top[row];
  const room = state.height - state.layout.head;
  const isInView = state.layout.fixed[row] || (top >= state.view.y && top <= state.view.y + room - 30);
  if (!isInView) state.view.y = top - room / 2;
  select(state, slice);
}

function next(state) {
  if (!state.found) return;
  const slice = nextFound(state.model, state.found, state.selected, state.view.from);
  if (slice >= 0) bringIntoView(state, slice);
}

/** Select the slice behind or before the selected one in its row; without one, the first in view. */
function beside(state, by) {
  const { model, view, layout } = state;
  const shown = model.rows.findIndex((row, number) => layout.top[number] >= view.y && row.last > row.first);
  const row = model.rows[state.selected < 0 ? shown : rowOf(model, state.selected)];
  if (!row) return;
  const first = Math.min(firstAfter(model.end, view.from, row.first, row.last), row.last - 1);
  const slice = state.selected < 0 ? first : Math.min(Math.max(state.selected + by, row.first), row.last - 1);
  bringIntoView(state, slice);
}

/** Select a slice, and move the view to it if it is not all there. */
function bringIntoView(state, slice) {
  const { start, end } = state.model;
  const [from, to] = [state.view.from, state.view.from + state.span / state.view.scale];
  if (start[slice] < from || end[slice] > to) state.view.from = start[slice] - 0.4 * (to - from);
  reveal(state, slice);
}

/** Let the controls above the canvas work. */
function control(state) {
  const { place, model } = state;
  const found = place.querySelector(".found");
  state.findBox.addEventListener("input", () => {
    state.found = namesWith(model.names, state.findBox.value);
    tint(state);
    const sum = state.found && countFound(model, state.found);
    found.value = sum ? `${sum.count.toLocaleString("en")} found, ${timeText(sum.total)} in all` : "";
    changed(state);
  });
  state.findBox.addEventListener("keydown", (event) => {
    if (event.key === "Enter") next(state);
  });
  const on = (name, action) => place.querySelector(name).addEventListener("click", action);
  on(".next", () => next(state));
  on(".whole", () => show(state, 0, model.whole));
  on(".mark", ({ target }) => {
    state.marking = !state.marking;
    target.setAttribute("aria-pressed", state.marking);
  });
  place.querySelector(".order").addEventListener("change", ({ target }) => sort(state, target.value));
  on(".larger", () => {
    if (place.classList.toggle("large")) state.canvas.parentElement.style.height = "";
    else fitHeight(state);
  });
  on("input.path", (event) => { state.showPath = event.target.checked; changed(state); });
  on("input.collectives", (event) => { state.showCollectives = event.target.checked; changed(state); });
}
