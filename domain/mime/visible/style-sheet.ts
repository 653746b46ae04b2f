/** Properties that decide whether a text is visible. */
const RELEVANT = new Set([
  'display',
  'visibility',
  'opacity',
  'font',
  'font-size',
  'color',
  '-webkit-text-fill-color',
  'background',
  'background-color',
  'background-image',
  'position',
  'left',
  'top',
  'right',
  'bottom',
  'text-indent',
  'margin-left',
  'margin-top',
  'width',
  'height',
  'max-width',
  'max-height',
  'overflow',
  'clip',
  'clip-path',
  'transform',
]);
const MAX_STYLE_CHARACTERS = 4_000;
const MAX_SHEET_CHARACTERS = 200_000;
const MAX_RULES = 2_000;
/** Maximum number of rules for an id, class or element name. Bounds the work per element. */
const MAX_RULES_PER_NAME = 50;
const MAX_CLASSES = 20;

interface Declaration {
  value: string;
  important: boolean;
}
/** By property name, in lower case. */
export type Declarations = Map<string, Declaration>;

/** Parses the content of a `style` attribute, in lower case. Omits properties that do not affect visibility. */
export function parseDeclarations(style: string): Declarations {
  const found: Declarations = new Map();
  for (const declaration of resolveEscapes(style.slice(0, MAX_STYLE_CHARACTERS)).toLowerCase().split(';')) {
    const colon = declaration.indexOf(':');
    const property = declaration.slice(0, Math.max(0, colon)).trim();
    if (!RELEVANT.has(property)) continue;
    const whole = declaration.slice(colon + 1).trim();
    const important = whole.endsWith('important') && whole.includes('!');
    const value = important ? whole.slice(0, whole.lastIndexOf('!')).trim() : whole;
    if (important || found.get(property)?.important !== true) found.set(property, { value, important });
  }
  return found;
}

/** Removes comments, and resolves `\6e`, which would otherwise disguise a name. */
function resolveEscapes(css: string): string {
  const bare = removeBetween(css, '/*', '*/');
  return bare.includes('\\')
    ? bare.replace(/\\([0-9a-f]{1,6})\s?/gi, (_escape, hex: string) => {
        const code = Number.parseInt(hex, 16);
        return code > 0 && code < 0x11_0000 ? String.fromCodePoint(code) : '';
      })
    : bare;
}

function removeBetween(text: string, start: string, end: string): string {
  const kept: string[] = [];
  for (let at = 0; at !== -1; ) {
    const from = text.indexOf(start, at);
    kept.push(text.slice(at, from === -1 ? undefined : from));
    const to = from === -1 ? -1 : text.indexOf(end, from + start.length);
    at = to === -1 ? -1 : to + end.length;
  }
  return kept.join('');
}

interface Rule {
  tag: string;
  id: string;
  classes: string[];
  specificity: number;
  declarations: Declarations;
}

export interface StyledElement {
  name: string;
  attributes: Record<string, string>;
}

export interface StyleSheet {
  /** The declarations of the rules for this element, in order of their precedence, lowest first. */
  match(element: StyledElement): Declarations[];
}

/**
 * Parses style sheets as mail programs apply them: selectors of one element (`p`, `.a`, `#b`, `td.a.b`). Of rules with
 * ancestor or sibling selectors, only backgrounds are used, because white text may be visible on them. Conditional
 * rules (`@media` with a condition) are ignored.
 */
export function parseStyleSheet(css: string): StyleSheet {
  const rules = new Map<string, Rule[]>();
  let count = 0;
  for (const [selectors, body] of splitRules(resolveEscapes(css.slice(0, MAX_SHEET_CHARACTERS)))) {
    const declarations = parseDeclarations(body);
    if (declarations.size === 0) continue;
    for (const selector of selectors.split(',', 100)) {
      const rule = parseSelector(selector, declarations);
      if (rule === null || count >= MAX_RULES) continue;
      const key = rule.id ? `#${rule.id}` : rule.classes[0] ? `.${rule.classes[0]}` : rule.tag;
      const bucket = rules.get(key) ?? [];
      if (bucket.length >= MAX_RULES_PER_NAME) continue;
      bucket.push(rule);
      rules.set(key, bucket);
      count += 1;
    }
  }
  return { match: (element) => (rules.size === 0 ? [] : matchRules(rules, element)) };
}

function matchRules(rules: Map<string, Rule[]>, { name, attributes }: StyledElement): Declarations[] {
  const classes = new Set(splitClasses(attributes.class));
  const id = (attributes.id ?? '').slice(0, 100).toLowerCase();
  const keys = ['*', name, ...[...classes].map((word) => `.${word}`), `#${id}`];
  return keys
    .flatMap((key) => rules.get(key) ?? [])
    .filter(
      (rule) =>
        (rule.tag === '*' || rule.tag === name) &&
        (rule.id === '' || rule.id === id) &&
        rule.classes.every((word) => classes.has(word)),
    )
    .sort((one, other) => one.specificity - other.specificity)
    .map(({ declarations }) => declarations);
}

function splitClasses(value = ''): string[] {
  return value
    .slice(0, 1_000)
    .toLowerCase()
    .split(/\s+/, MAX_CLASSES)
    .filter((word) => word !== '');
}

/** Finds the rules outside of conditional blocks. Reads each character once. */
function* splitRules(css: string): Generator<[selectors: string, body: string]> {
  for (let at = 0; at < css.length; ) {
    const open = css.indexOf('{', at);
    if (open === -1) return;
    const prelude = css.slice(at, open);
    const selectors = prelude.slice(Math.max(prelude.lastIndexOf(';'), prelude.lastIndexOf('}')) + 1);
    const words = selectors.replace(/<!--|-->/g, '').trim();
    if (words.startsWith('@')) {
      at = /^@media\s+(?:only\s+)?(?:screen|all)$/i.test(words) ? open + 1 : findBlockEnd(css, open);
      continue;
    }
    const close = css.indexOf('}', open);
    yield [words, css.slice(open + 1, close === -1 ? undefined : close)];
    at = close === -1 ? css.length : close + 1;
  }
}

function findBlockEnd(css: string, open: number): number {
  let depth = 0;
  for (let at = open; at < css.length; at += 1) {
    if (css[at] === '{') depth += 1;
    else if (css[at] === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return css.length;
}

const COMPOUND = /^([a-z][a-z0-9-]{0,30}|\*)?((?:[.#][\w-]{1,100}){0,10})$/;

function parseSelector(selector: string, declarations: Declarations): Rule | null {
  const words = selector.slice(0, 500).trim().toLowerCase();
  const own = words.replace(/^(?:(?:html|body|\*)(?: ?> ?| +))+(?=\S)/, '');
  const simple = toRule(own, declarations);
  if (simple !== null) return simple;
  const backgrounds = [...declarations].filter(([property]) => property.startsWith('background'));
  const last = own.split(/[\s>+~]+/).at(-1) ?? '';
  return backgrounds.length === 0 || last === own ? null : toRule(last, new Map(backgrounds));
}

function toRule(compound: string, declarations: Declarations): Rule | null {
  const match = COMPOUND.exec(compound);
  if (match === null || compound === '') return null;
  const parts = (match[2] ?? '').match(/[.#][\w-]+/g) ?? [];
  const classes = parts.filter((part) => part.startsWith('.')).map((part) => part.slice(1));
  const id = parts.find((part) => part.startsWith('#'))?.slice(1) ?? '';
  const tag = match[1] ?? '*';
  const specificity = (id ? 100 : 0) + classes.length * 10 + (tag === '*' ? 0 : 1);
  return { tag, id, classes, specificity, declarations };
}
