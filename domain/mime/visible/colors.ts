/** Red, green and blue, each 0–255. */
export type Color = readonly [number, number, number];

const NAMED: Record<string, Color> = {
  white: [255, 255, 255],
  black: [0, 0, 0],
  snow: [255, 250, 250],
  ivory: [255, 255, 240],
  ghostwhite: [248, 248, 255],
  whitesmoke: [245, 245, 245],
  gainsboro: [220, 220, 220],
  lightgray: [211, 211, 211],
  lightgrey: [211, 211, 211],
  silver: [192, 192, 192],
  gray: [128, 128, 128],
  grey: [128, 128, 128],
  red: [255, 0, 0],
  green: [0, 128, 0],
  blue: [0, 0, 255],
  navy: [0, 0, 128],
  yellow: [255, 255, 0],
};
const HEX = /^#?([0-9a-f]{3,8})$/;
const RGB =
  /^rgba?\(\s*([\d.]{1,6}%?)[\s,]+([\d.]{1,6}%?)[\s,]+([\d.]{1,6}%?)(?:[\s,/]+([\d.]{1,6}%?))?\s*\)$/;
/** Below this opacity, people do not notice a text. */
export const MIN_OPACITY = 0.06;
/** Closer colors cannot be distinguished. */
const TOLERANCE = 6;

/** @param value in lower case. @returns null for a color that is unknown. */
export function parseColor(value: string): Color | 'transparent' | null {
  if (value === 'transparent') return 'transparent';
  const named = NAMED[value];
  if (named !== undefined) return named;
  const digits = HEX.exec(value)?.[1];
  if (digits !== undefined) return parseHex(digits);
  const [, red, green, blue, alpha] = RGB.exec(value) ?? [];
  if (red === undefined || green === undefined || blue === undefined) return null;
  if (alpha !== undefined && parseShare(alpha, 1) < MIN_OPACITY) return 'transparent';
  return [parseShare(red, 255), parseShare(green, 255), parseShare(blue, 255)];
}

function parseHex(digits: string): Color | 'transparent' | null {
  const long = digits.length < 6 ? [...digits].map((digit) => digit + digit).join('') : digits;
  if (long.length !== 6 && long.length !== 8) return null;
  const at = (index: number) => Number.parseInt(long.slice(index, index + 2), 16);
  return long.length === 8 && at(6) / 255 < MIN_OPACITY ? 'transparent' : [at(0), at(2), at(4)];
}

function parseShare(value: string, whole: number): number {
  const amount = Number.parseFloat(value);
  return value.endsWith('%') ? (amount / 100) * whole : amount;
}

export function isSameColor(one: Color, other: Color): boolean {
  return one.every((channel, at) => Math.abs(channel - (other[at] ?? 0)) <= TOLERANCE);
}
