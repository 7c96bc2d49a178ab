// Colors: a hue per kind of activity, a lightness per name. Safe for the color-blind: blue, orange, green, grey, purple.

const HUES = {
  computation: [212, 62], communication: [28, 88], memory: [160, 62], device_other: [0, 0], launch: [275, 32],
  sync: [345, 62], host_communication: [28, 88], python: [48, 26], step: [0, 0], annotation: [190, 26],
};
const HOST = [225, 16];
const LIGHTEST = 74; // percent; the ink of names has a contrast of 4.5 on all from DARKEST up
const DARKEST = 58;

/** Return the color of every name, each of one kind, as ABGR, for ImageData. */
export function colorsOf({ kinds, kindOf, names }) {
  const lights = [0, 1, 2, 3, 4].map((i) => DARKEST + i * ((LIGHTEST - DARKEST) / 4));
  const colors = kinds.map((kind) => lights.map((light) => abgr(...(HUES[kind] ?? HOST), light)));
  return Uint32Array.from(names, (name, i) => colors[kindOf[i]][hashOf(name) % lights.length]);
}

function hashOf(text) {
  let hash = 7;
  const length = Math.min(text.length, 200);
  for (let i = 0; i < length; i++) hash = (hash * 31 + text.charCodeAt(i)) >>> 0;
  return hash;
}

function abgr(hue, saturation, light) {
  const s = saturation / 100;
  const l = light / 100;
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return ((255 << 24) | (part(4) << 16) | (part(8) << 8) | part(0)) >>> 0;
}

/** Return a color of the page's style, such as "--ink", as CSS writes it. */
export function inkOf(element, name) {
  return getComputedStyle(element).getPropertyValue(name).trim();
}

/** Return a color as ABGR, given as #rrggbb. */
export function fromHex(hex) {
  const value = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** Return a color mostly of the second kind: that of what a search did not find. */
export function mixed(color, paper) {
  const part = (shift) => (((color >>> shift) & 255) + 4 * ((paper >>> shift) & 255)) / 5;
  return ((255 << 24) | (part(16) << 16) | (part(8) << 8) | part(0)) >>> 0;
}
