// Bytes of the page: what Python packed, as typed arrays.

/** Return bytes written as base64. */
function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** Return the bytes of an element of data. */
export function dataOf(id) {
  return bytesOf(document.getElementById(id).textContent);
}

/** Return what was written as JSON. */
export function jsonOf(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** Return the bytes of a zlib stream. */
export async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return a function that unpacks a column of an element of data: integers exact up to 2^53, those of names as bytes. */
export function columnsIn(id, listed) {
  const letters = document.getElementById(id).textContent;
  const named = new Map(listed.map((column) => [column.name, column]));
  return async (name) => {
    const { at, size, count, planes, unit, signed } = named.get(name);
    const piece = bytesOf(letters.slice((at / 3) * 4, Math.ceil((at + size) / 3) * 4)); // four letters are three bytes
    const bytes = await unzipped(piece.subarray(0, size));
    return name === "names" ? bytes : integers(bytes, count, planes, unit, signed);
  };
}

function integers(bytes, count, planes, unit, signed) {
  const values = new Float64Array(count);
  for (let plane = 0, weight = signed ? 1 : unit; plane < planes; plane++, weight *= 256) {
    const first = plane * count;
    for (let i = 0; i < count; i++) values[i] += bytes[first + i] * weight;
  }
  if (!signed) return values;
  for (let i = 0; i < count; i++) {
    const half = Math.floor(values[i] / 2);
    values[i] = (2 * half === values[i] ? half : -half - 1) * unit;
  }
  return values;
}

/** Replace each value by the sum of all up to it. */
export function summed(values) {
  for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
  return values;
}
