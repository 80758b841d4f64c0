// A short hash of a value, for labels.

/** Letters and digits that form no words, as Kubernetes uses them in `pod-template-hash`. */
const DIGITS = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * Returns seven letters and digits that change when a value of JSON does. The order of members does
 * not count. The same value has the same hash in every version of the SDK, and without fractions in
 * every language.
 *
 * Use it as a label that selects the objects of one version. In the *name* of an object it makes
 * another object of each version, which the host creates at once and no update group limits.
 */
export function templateHash(value: unknown): string {
  let hash = 0x811c9dc5;
  for (const byte of text(JSON.parse(JSON.stringify(value ?? null)))) {
    // FNV-1a of 32 bits.
    hash = Math.imul(hash ^ byte.charCodeAt(0), 0x01000193) >>> 0;
  }
  let digits = '';
  for (let count = 0; count < 7; count += 1) {
    digits += DIGITS.charAt(hash % DIGITS.length);
    hash = Math.floor(hash / DIGITS.length);
  }
  return digits;
}

/** JSON with sorted members, and a comma after each, as one character for each byte of UTF-8. */
function text(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map((one) => `${text(one)},`).join('')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, one]) => [bytes(key), text(one)] as const);
    members.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${members.map(([key, one]) => `${key}:${one},`).join('')}}`;
  }
  return bytes(value);
}

/** A value without members. No engine of a component has to have a TextEncoder. */
function bytes(leaf: unknown): string {
  const escaped = encodeURIComponent(JSON.stringify(leaf));
  return escaped.replace(/%(..)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}
