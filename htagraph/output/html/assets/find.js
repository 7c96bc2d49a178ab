// Which slices have a name with some letters in it.

/** Return which names hold a text, as 1 or 0 by name; null for no text. */
export function namesWith(names, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  return Uint8Array.from(names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0));
}

/** Return how many slices are among those found, and how long they are in all, ns. */
export function countFound(model, found) {
  let count = 0;
  let total = 0;
  for (let i = 0; i < model.count; i++) {
    if (!found[model.name[i]]) continue;
    count++;
    total += model.end[i] - model.start[i];
  }
  return { count, total };
}

/** Return the next found slice by start, after the selected one or after a moment; the first of all behind the last. */
export function nextFound(model, found, selected, moment) {
  const after = selected >= 0 ? model.start[selected] : moment;
  let best = -1;
  let first = -1;
  for (let i = 0; i < model.count; i++) {
    if (!found[model.name[i]]) continue;
    if (first < 0 || model.start[i] < model.start[first]) first = i;
    const later = model.start[i] > after || (model.start[i] === after && i > selected);
    if (later && (best < 0 || model.start[i] < model.start[best])) best = i;
  }
  return best < 0 ? first : best;
}
