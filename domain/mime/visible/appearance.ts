import { type Color, isSameColor, MIN_OPACITY, parseColor } from './colors.ts';
import { type Declarations, parseDeclarations, type StyledElement, type StyleSheet } from './style-sheet.ts';

/** The properties that determine whether the text of an element is visible. */
export interface Appearance {
  /** The element and its content are not displayed. */
  isGone: boolean;
  /** `visibility: hidden`, which inner elements may override. */
  isInvisible: boolean;
  fontSizePx: number;
  /** Null if unknown. */
  color: Color | 'transparent' | null;
  /** The nearest background; null if unknown, such as an image. */
  background: Color | null;
}

export const ROOT: Appearance = {
  isGone: false,
  isInvisible: false,
  fontSizePx: 16,
  color: [0, 0, 0],
  background: [255, 255, 255],
};

/** Smaller text cannot be read. */
const MIN_FONT_SIZE_PX = 2;
/** Boxes of one pixel are as invisible as boxes of zero size. */
const MAX_ZERO_SIZE_PX = 1;
const OFF_SCREEN_PX = -400;

/** Whether text directly in the element cannot be seen. */
export function isConcealed({ isGone, isInvisible, fontSizePx, color, background }: Appearance): boolean {
  if (isGone || isInvisible || fontSizePx < MIN_FONT_SIZE_PX || color === 'transparent') return true;
  return color !== null && background !== null && isSameColor(color, background);
}

/** Derives the appearance of an element from its parent's, the style sheets and its own attributes. */
export function deriveAppearance(parent: Appearance, element: StyledElement, sheet: StyleSheet): Appearance {
  const { attributes } = element;
  const matched = sheet.match(element);
  const style = attributes.style === undefined ? [] : [parseDeclarations(attributes.style)];
  const cascade = [...matched, ...style];
  const get = (property: string) => findValue(cascade, property);
  return {
    isGone: parent.isGone || isRemoved(attributes, get),
    isInvisible: resolveVisibility(get('visibility'), parent),
    fontSizePx: resolveFontSize(get, parent),
    color: resolveColor(element, get, parent),
    background: resolveBackground(element, get, parent),
  };
}

type Get = (property: string) => string | undefined;

function findValue(cascade: Declarations[], property: string): string | undefined {
  let found: string | undefined;
  let isImportant = false;
  for (const declarations of cascade) {
    const declared = declarations.get(property);
    if (declared === undefined || (isImportant && !declared.important)) continue;
    found = declared.value;
    isImportant = declared.important;
  }
  return found;
}

function isRemoved(attributes: Record<string, string>, get: Get): boolean {
  const display = get('display');
  if (display === 'none' || (attributes.hidden !== undefined && display === undefined)) return true;
  const opacity = get('opacity');
  if (opacity !== undefined && parseNumber(opacity) < MIN_OPACITY) return true;
  return hasNoSize(get) || isOffScreen(get) || isClipped(get);
}

function parseNumber(value: string): number {
  const amount = Number.parseFloat(value);
  if (Number.isNaN(amount)) return 1;
  return value.endsWith('%') ? amount / 100 : amount;
}

function hasNoSize(get: Get): boolean {
  if (!/^(?:hidden|clip)/.test(get('overflow') ?? '')) return false;
  return ['height', 'max-height', 'width', 'max-width'].some((property) => {
    const length = toPixels(get(property));
    return length !== null && length <= MAX_ZERO_SIZE_PX;
  });
}

function isOffScreen(get: Get): boolean {
  const isAway = (property: string) => (toPixels(get(property)) ?? 0) <= OFF_SCREEN_PX;
  if (['text-indent', 'margin-left', 'margin-top'].some(isAway)) return true;
  return (
    /^(?:absolute|fixed|relative)/.test(get('position') ?? '') &&
    ['left', 'top', 'right', 'bottom'].some(isAway)
  );
}

function isClipped(get: Get): boolean {
  return (
    /^rect\(\s*(?:[01](?:px)?[\s,]*){4}\)/.test(get('clip') ?? '') ||
    /^(?:inset\((?:50|100)%|circle\(0)/.test(get('clip-path') ?? '') ||
    /scale[xy]?\(\s*0?\.?0*[\s,)]|translate[xy]?\(\s*-\d{3,}/.test(get('transform') ?? '')
  );
}

/** @returns null if the value is not a length. Relative lengths are approximated. */
function toPixels(value: string | undefined, base = 16): number | null {
  const [, amount, unit] =
    /^([+-]?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))(px|pt|em|rem|ex|ch|%|vw|vh|in|cm|mm)?$/.exec(value ?? '') ??
    [];
  if (amount === undefined) return null;
  const number = Number(amount);
  if (unit === undefined || unit === 'px' || unit === 'pt') return number;
  if (unit === 'em') return number * base;
  if (unit === '%' || unit === 'vw' || unit === 'vh') return number * 10;
  return number * 16;
}

function resolveVisibility(value: string | undefined, parent: Appearance): boolean {
  if (value === 'hidden' || value === 'collapse') return true;
  return value === 'visible' || value === 'initial' ? false : parent.isInvisible;
}

function resolveFontSize(get: Get, { fontSizePx }: Appearance): number {
  const short = /(?:^|\s)(\d{1,4}(?:\.\d{0,4})?(?:px|pt|em|rem|%)?)(?:\/|\s)/.exec(get('font') ?? '')?.[1];
  const value = get('font-size') ?? short;
  if (value === undefined) return fontSizePx;
  if (value.endsWith('%')) return (fontSizePx * (Number.parseFloat(value) || 0)) / 100;
  if (/^(?:xx?-|small|medium|large|initial)/.test(value)) return 16;
  return toPixels(value, fontSizePx) ?? fontSizePx;
}

function resolveColor(
  { name, attributes }: StyledElement,
  get: Get,
  parent: Appearance,
): Appearance['color'] {
  const attribute = name === 'font' ? attributes.color : name === 'body' ? attributes.text : undefined;
  const value = get('-webkit-text-fill-color') ?? get('color') ?? attribute?.trim().toLowerCase();
  if (value === undefined || value === 'inherit' || value === 'currentcolor')
    // Links have their own color.
    return name === 'a' && attributes.href !== undefined && value === undefined ? null : parent.color;
  return parseColor(value);
}

function resolveBackground({ name, attributes }: StyledElement, get: Get, parent: Appearance): Color | null {
  if (attributes.background !== undefined || name === 'button') return null;
  const values = [get('background-color'), get('background'), attributes.bgcolor?.trim().toLowerCase()];
  const image = `${get('background-image') ?? ''} ${get('background') ?? ''}`;
  if (/url\(|gradient/.test(image)) return null;
  const value = values.find((candidate) => candidate !== undefined && candidate !== '');
  if (value === undefined || /^(?:inherit|initial|unset|none|transparent)/.test(value))
    return parent.background;
  const color = parseColor(value) ?? parseColor(/^\S{1,60}/.exec(value)?.[0] ?? '');
  return color === 'transparent' ? parent.background : color;
}
