import { readFileSync } from 'node:fs';

/** An input that makes careless code take more than linear time. */
export interface HostileInput {
  name: string;
  build(characters: number): string;
}

const repeat =
  (unit: string) =>
  (characters: number): string =>
    unit.repeat(Math.ceil(characters / unit.length)).slice(0, characters);

/** The same on lines of the length up to which most rules read a line. */
const onLines =
  (unit: string) =>
  (characters: number): string =>
    repeat(`${repeat(unit)(LINE_CHARACTERS)}\n`)(characters);
const LINE_CHARACTERS = 990;

/** Openers, then closers: the second half of a text refers to its first half. */
const halves = (first: string, second: string) => (characters: number) =>
  repeat(first)(characters / 2) + repeat(second)(characters / 2);

const toInput = (unit: string): HostileInput => ({
  name: `repeated ${JSON.stringify(unit)}`,
  build: repeat(unit),
});

/** Inputs for functions that read HTML. */
const MARKUP: readonly HostileInput[] = [
  ...[
    ...[
      '<',
      '>',
      '&',
      '"',
      'a',
      ' ',
      '\n',
      '<a ',
      '<a@b> ',
      '&amp;',
      '&#1;',
      '<b>',
      '</b>',
      '<p>',
      '<br>',
      '</p>',
    ],
    ...[
      '<b></i>',
      '<div><p>',
      '<blockquote>',
      '<blockquote>a<br>',
      '<td><table>',
      '<style>',
      '<!--',
      '<![CDATA[',
    ],
    ...[
      '<a b="',
      '<a b=c ',
      '<svg>',
      '<script>',
      '<title>',
      '<?',
      '<li>a',
      '<b>x</b>',
      '<p>x</p>\n',
      'word ',
    ],
    ...['<div class="gmail_quote">', '<div id="divrplyfwdmsg">', '<img alt="', '<a href="http://a">a</a>'],
    ...['<div style="a:b;c:d">x</div>', '<ul><li>a', '<table><tr><td>a'],
  ].map(toInput),
  { name: 'distinct elements', build: (characters) => distinct(characters, (n) => `<x${n}>`) },
  { name: 'elements, then their ends', build: halves('<b>', '</b>') },
  { name: 'elements, then other ends', build: halves('<b>', '</i>') },
  { name: 'quotes, then lines', build: halves('<blockquote>', 'a<br>') },
  { name: 'elements, then paragraphs', build: halves('<div>', '<p>') },
];

/** Inputs for functions that read anything else. */
const TEXT: readonly HostileInput[] = [
  ...[
    ...['a', ' ', '\t', '\n', '\r\n', '\0', '\ufffd', '\u200b', '<', '>', '"', "'", '(', '[', '@', ':', ';'],
    ...[',', '.', '-', '=', '%', '&', '\\', '*', '_', '1', '2.', 'é', '你', '<a ', '<a@b', '>\n', 'a@', 'a-'],
    ...[
      'a@b ',
      'a@b, ',
      '<a@b> ',
      'a@b\n',
      'a.',
      '"a" ',
      '=?utf-8?q?a?= ',
      '=?',
      '=?utf-8?q?',
      '\\"',
      'a=b; ',
    ],
    ...['X-A: b\r\n', '\r\n a', '\n\t', ':\n', '> ', '>> ', '--b\n', '--\n', 'fbl.', 'On a wrote:\n'],
    ...['From: a\n', '550 ', '5.1.1 ', '```\n', '[a]', 'Re: ', 'a%20', "x''", '&amp;', 'complaint.'],
  ].map(toInput),
  ...['a@b ', '<a@b> ', 'word ', '550 5.1.1 ', 'From: a ', 'fbl.', '<', '"', '. ', '> '].map((unit) => ({
    name: `lines of ${JSON.stringify(unit)}`,
    build: onLines(unit),
  })),
  ...(
    [
      ['(', ')'],
      ['<', '>'],
      ['>', '<'],
      ['[', ']'],
      ['"', '@a'],
      ['> a\n', 'a\n\n'],
      ['\n', ' a'],
    ] as const
  ).map(([first, second]) => ({
    name: `${JSON.stringify(first)}, then ${JSON.stringify(second)}`,
    build: halves(first, second),
  })),
  { name: 'one long token', build: (characters) => `x${'a'.repeat(characters)}!` },
  { name: 'a long run of spaces within words', build: (characters) => `a${' '.repeat(characters)}b` },
  { name: 'distinct words', build: (characters) => distinct(characters, (n) => `w${n} `) },
  { name: 'distinct addresses', build: (characters) => distinct(characters, (n) => `u${n}@a.example, `) },
  { name: 'distinct fields', build: (characters) => distinct(characters, (n) => `X-${n}: a\n`) },
  {
    name: 'lists of boundaries',
    build: (characters) =>
      distinct(characters / 2, (n) => `boundary=b${n}\n`) + distinct(characters / 2, (n) => `--b${n}\n`),
  },
];

function distinct(characters: number, unit: (n: number) => string): string {
  const units: string[] = [];
  for (let n = 0, length = 0; length < characters; n += 1) {
    units.push(unit(n));
    length += units.at(-1)?.length ?? 0;
  }
  return units.join('').slice(0, characters);
}

/** The inputs for a module: those for its kind of text, and repeats of what its expressions search for. */
export function listHostileInputs(file: string, source = readFileSync(file, 'utf8')): HostileInput[] {
  const units = new Set(findExpressions(source).flatMap(listUnits));
  return [
    ...(/html|nesting|preview|extract-reply/.test(file) ? MARKUP : []),
    ...(/html|nesting/.test(file) ? [] : TEXT),
    ...[...units].map(toInput),
    // Names of header fields start with `x-`, and only then an expression searches the rest.
    ...[...units]
      .filter((unit) => /^[a-z-]+$/.test(unit))
      .map((unit) => ({
        name: `x- and repeated ${JSON.stringify(unit)}`,
        build: (characters: number) => `x-${repeat(unit)(characters)}`,
      })),
  ];
}

const REGEX_LITERAL =
  /(?<=[=(,:[?&|!]\s*|return\s+|^\s+)\/(?![/*])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+)\/[a-z]*/gm;
const TEXT_LITERAL = /`((?:\\.|[^`\\])*)`|'((?:\\.|[^'\\\n])*)'/g;

/** The sources of a module's expressions: literals, and the texts in modules that build expressions from texts. */
export function findExpressions(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const literals = [...code.matchAll(REGEX_LITERAL)].map(([, body = '']) => body);
  if (!code.includes('new RegExp(')) return literals;
  const texts = [...code.matchAll(TEXT_LITERAL)].map(([, template, text]) => template ?? text ?? '');
  return [...literals, ...texts.filter((text) => !/^[./@]|^.$/s.test(text))];
}

/** What separates or fills tokens: the members of the classes that expressions use. */
const FILLERS = ['', ' ', '.', '\n', ' a'];
const MAX_TOKENS = 3;

/** The literal texts of an expression, each alone and with fillers. */
export function listUnits(expression: string): string[] {
  const tokens = expression
    .replace(/\(\?(?:<?[=!]|<\w+>|:)/g, '(')
    .replace(/\[(?:\\.|[^\]\\])*\]|\\[a-zA-Z](?:\{[^}]*\})?|\{\d+(?:,\d*)?\}/g, '\ue000')
    .replace(/\\(.)/g, '$1')
    .split(/[\ue000()|?*+^$]+/)
    .map((token) => token.replaceAll('.', ''))
    .filter((token) => token !== '');
  const distinctTokens = [...new Set(tokens)];
  // An expression of hundreds of phrases is walked with its first and last ones; each phrase is searched alike.
  const walked =
    distinctTokens.length <= 2 * MAX_TOKENS
      ? distinctTokens
      : [...distinctTokens.slice(0, MAX_TOKENS), ...distinctTokens.slice(-MAX_TOKENS)];
  return walked.flatMap((token) => FILLERS.map((filler) => token + filler));
}
