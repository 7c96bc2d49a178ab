// Zooming, panning, selecting and pinning with mouse, touch and keys.
import { areaBetween } from "./area.js";
import { laneAt } from "./layout.js";

const LEAST_SPAN = 20; // ns in view at the closest
const ZOOM = 1.25; // per key or notch of a wheel
const PAN = 0.1; // of the view, per key
const PIN_PIXELS = 24; // right of the names of lanes, where a click pins a lane

/** Keep the view inside the job. */
export function settle(state) {
  const { view, model, layout } = state;
  const whole = Math.max(model.whole, LEAST_SPAN);
  const span = Math.min(Math.max(state.span / view.scale, LEAST_SPAN), whole * 1.04);
  view.scale = state.span / span;
  view.from = Math.min(Math.max(view.from, -0.02 * whole), 1.02 * whole - span);
  const room = state.height - layout.head;
  view.y = Math.min(Math.max(view.y, 0), Math.max(layout.height - room, 0));
}

/** Zoom around a pixel. */
export function zoom(state, factor, x) {
  const { view } = state;
  const moment = view.from + (x - state.left) / view.scale;
  view.scale *= factor;
  view.from = moment - (x - state.left) / view.scale;
  state.changed();
}

/** Show a stretch of time, with some room on both sides. */
export function show(state, from, to) {
  const margin = Math.max((to - from) * 0.1, LEAST_SPAN / 2);
  state.view.scale = state.span / (to - from + 2 * margin);
  state.view.from = from - margin;
  state.changed();
}

/** Show exactly a stretch of time. */
export function showExactly(state, from, to) {
  state.view.scale = state.span / Math.max(to - from, LEAST_SPAN);
  state.view.from = from;
  state.changed();
}

/** Let keys and pointers move the view. */
export function listen(state) {
  const { canvas } = state;
  canvas.addEventListener("keydown", (event) => pressed(state, event));
  canvas.addEventListener("wheel", (event) => wheeled(state, event), { passive: false });
  canvas.addEventListener("pointerdown", (event) => grabbed(state, event));
  canvas.addEventListener("pointermove", (event) => moved(state, event));
  canvas.addEventListener("pointerup", (event) => released(state, event));
  canvas.addEventListener("pointercancel", () => {
    [state.grab, state.dragged] = [null, null];
    state.changed();
  });
  canvas.addEventListener("pointerleave", () => state.hover(-1, 0, 0));
  canvas.addEventListener("dblclick", (event) => {
    zoomTo(state, state.sliceAt(event.offsetX, event.offsetY));
  });
}

function zoomTo(state, slice) {
  if (slice >= 0) show(state, state.model.start[slice], state.model.end[slice]);
}

function pressed(state, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { view, span } = state;
  const middle = state.pointer ?? state.left + span / 2;
  const step = (PAN * span) / view.scale;
  const actions = {
    w: () => zoom(state, ZOOM, middle), s: () => zoom(state, 1 / ZOOM, middle),
    a: () => { view.from -= step; }, d: () => { view.from += step; },
    arrowleft: () => { view.from -= step; }, arrowright: () => { view.from += step; },
    arrowup: () => { view.y -= 42; }, arrowdown: () => { view.y += 42; },
    "+": () => zoom(state, ZOOM, middle), "-": () => zoom(state, 1 / ZOOM, middle),
    0: () => show(state, 0, state.model.whole), "/": () => state.findBox.focus(), n: () => state.next(),
    f: () => zoomTo(state, state.selected), enter: () => state.enter(),
    ".": () => state.beside(1), ",": () => state.beside(-1), p: () => state.pinSelected(),
    escape: () => { if (state.area) state.choose(null); else state.select(-1); },
  };
  const action = actions[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  action();
  state.changed();
}

function wheeled(state, event) {
  const inside = document.activeElement === state.canvas;
  if (!inside && !event.ctrlKey) return;
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (event.shiftKey) state.view.y += (event.deltaY || event.deltaX) * lines;
  else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) state.view.from += (event.deltaX * lines) / state.view.scale;
  else zoom(state, ZOOM ** ((-event.deltaY * lines) / 100), event.offsetX);
  state.changed();
}

function grabbed(state, event) {
  state.canvas.focus({ preventScroll: true });
  state.canvas.setPointerCapture(event.pointerId);
  const [x, y] = [event.offsetX, event.offsetY];
  const isArea = x >= state.left && (event.shiftKey || state.marking || y < state.layout.ruler);
  state.grab = { x, y, from: state.view.from, top: state.view.y, far: false, isArea };
}

function moved(state, event) {
  const { grab, view } = state;
  state.pointer = event.offsetX;
  if (!grab) {
    state.hover(state.sliceAt(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
    return;
  }
  const [dx, dy] = [event.offsetX - grab.x, event.offsetY - grab.y];
  grab.far ||= Math.abs(dx) + Math.abs(dy) > 4;
  if (!grab.far) return;
  state.hover(-1, 0, 0);
  if (grab.isArea) {
    state.dragged = areaBetween(state, grab, { x: event.offsetX, y: event.offsetY });
    state.changed();
    return;
  }
  view.from = grab.from - dx / view.scale;
  view.y = grab.top - dy;
  state.changed();
}

function released(state, event) {
  const { grab } = state;
  state.grab = null;
  if (state.dragged) {
    state.choose(state.dragged);
    return;
  }
  if (!grab || grab.far) return;
  const lane = event.offsetX < state.left ? laneAt(state, event.offsetY) : null;
  if (lane && event.offsetX >= state.left - PIN_PIXELS) state.pin(lane.number);
  else if (event.offsetX < state.left) state.toggle(event.offsetY);
  else state.select(state.sliceAt(event.offsetX, event.offsetY));
}
