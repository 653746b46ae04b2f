/** East Asian charsets in which a character has two or more octets, and the second octet may be ASCII. */
const MULTI_BYTE = new Set(['big5', 'gbk', 'gb18030', 'euc-kr', 'euc-jp', 'shift_jis']);
const MAX_CHARACTER_OCTETS = 4;
const REPLACEMENT = '\ufffd';

/** Whether {@link decodeMultiByte} can decode the charset, which has the name that `TextDecoder.encoding` gives. */
export function isMultiByte(encoding: string): boolean {
  return MULTI_BYTE.has(encoding);
}

/** Decodes text in one of these charsets. Broken octets become U+FFFD, and the octets after them are kept. */
export function decodeMultiByte(bytes: Uint8Array, encoding: string): string {
  const isMeaningless = (octet: number) => encoding === 'big5' && (octet === 0x80 || octet === 0xff);
  if (bytes.some(isMeaningless)) return decodeBroken(bytes, encoding);
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return decodeBroken(bytes, encoding);
  }
}

/**
 * Decodes octets that are not all valid: `TextDecoder` drops the ASCII character after a broken octet of Shift_JIS, and
 * turns two octets that Big5 does not have into invisible characters.
 */
function decodeBroken(bytes: Uint8Array, encoding: string): string {
  const decoder = new TextDecoder(encoding, { fatal: true });
  const known = new Map<number, string | null>();
  const decodeOne = (octets: Uint8Array): string | null => {
    const key = octets.reduce((code, octet) => code * 256 + octet, octets.length);
    const found = known.get(key);
    if (found !== undefined) return found;
    const character = tryDecode(decoder, octets);
    known.set(key, character);
    return character;
  };
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    let length = 1;
    let character = decodeOne(bytes.subarray(at, at + length));
    while (character === null && length < MAX_CHARACTER_OCTETS && at + length < bytes.length) {
      length += 1;
      character = decodeOne(bytes.subarray(at, at + length));
    }
    pieces.push(character ?? REPLACEMENT);
    at += character === null ? 1 : length;
  }
  return pieces.join('');
}

/** The character that these octets encode; null if they are not exactly one character. */
function tryDecode(decoder: InstanceType<typeof TextDecoder>, octets: Uint8Array): string | null {
  const [first = 0] = octets;
  if (first < 0x80) return octets.length === 1 ? String.fromCharCode(first) : null;
  if (octets.length === 1 && decoder.encoding === 'big5') return null;
  try {
    const text = decoder.decode(octets);
    return [...text].length === 1 ? text : null;
  } catch {
    return null;
  }
}

/** Statistics of a text's octets read as characters of a charset. */
interface Census {
  characters: number;
  /** Characters whose first octet is common in most texts. */
  common: number;
  /** Sequences of characters without ASCII in between. */
  runs: number;
  /** Characters whose second octet is ASCII. */
  lowTrails: number;
  /** Japanese kana. */
  kana: number;
  /** The highest first octet. */
  maxLead: number;
  hasTwoDistinct: boolean;
}

interface Candidate {
  encoding: string;
  isLead(octet: number): boolean;
  isCommon(lead: number): boolean;
  isKana(lead: number): boolean;
  /** Distinguishes the charset from others with the same octets. */
  isLikely(census: Census): boolean;
}

const between = (low: number, high: number) => (octet: number) => octet >= low && octet <= high;
const isHighLead = between(0xa1, 0xfe);
const never = () => false;
/** In Japanese text, about half of the characters are kana. */
const hasKana = ({ kana, characters }: Census) => kana * 4 >= characters;

/** Tried in this order. The common first octets are those of punctuation, syllables and frequent ideographs. */
const CANDIDATES: readonly Candidate[] = [
  {
    encoding: 'shift_jis',
    isLead: (octet) => between(0x81, 0x9f)(octet) || between(0xe0, 0xfc)(octet),
    isCommon: between(0x81, 0x97),
    isKana: between(0x82, 0x83),
    isLikely: hasKana,
  },
  {
    encoding: 'euc-jp',
    isLead: isHighLead,
    isCommon: (lead) => between(0xa1, 0xa5)(lead) || between(0xb0, 0xcf)(lead),
    isKana: between(0xa4, 0xa5),
    isLikely: hasKana,
  },
  {
    encoding: 'big5',
    isLead: between(0xa1, 0xf9),
    isCommon: between(0xa1, 0xc6),
    isKana: never,
    // About 40 % in real text, and zero in the charsets below.
    isLikely: ({ lowTrails, characters }) => lowTrails * 8 >= characters,
  },
  {
    encoding: 'euc-kr',
    isLead: isHighLead,
    isCommon: (lead) => between(0xa1, 0xa3)(lead) || between(0xb0, 0xc8)(lead),
    isKana: never,
    // Every Chinese text has ideographs with higher octets, such as those for "is" and "in".
    isLikely: ({ maxLead, lowTrails }) => maxLead <= 0xc8 && lowTrails === 0,
  },
  {
    encoding: 'gb18030',
    isLead: isHighLead,
    isCommon: (lead) => between(0xa1, 0xa3)(lead) || between(0xb0, 0xd7)(lead),
    isKana: never,
    isLikely: ({ lowTrails }) => lowTrails === 0,
  },
];

/**
 * Detects the East Asian charset of a text without a declared charset. Most texts with 8-bit octets are in a
 * single-byte charset, so the conditions are strict: all characters must be valid, nearly all of them common, and in
 * sequences.
 *
 * @returns a name for `TextDecoder`; null if no charset fits.
 */
export function detectMultiByte(bytes: Uint8Array): string | null {
  const found = CANDIDATES.find((candidate) => {
    const census = countCharacters(bytes, candidate);
    return census !== null && isPlausible(census) && candidate.isLikely(census) && isValid(bytes, candidate);
  });
  return found?.encoding ?? null;
}

function isPlausible({ characters, common, runs, hasTwoDistinct }: Census): boolean {
  return hasTwoDistinct && characters >= 2 * runs && common * 10 >= characters * 9;
}

/** Returns null if the octets are not valid in the charset. */
function countCharacters(bytes: Uint8Array, { isLead, isCommon, isKana }: Candidate): Census | null {
  const census = {
    characters: 0,
    common: 0,
    runs: 0,
    lowTrails: 0,
    kana: 0,
    maxLead: 0,
    hasTwoDistinct: false,
  };
  let runEnd = -1;
  let first = -1;
  for (let at = 0; at < bytes.length; at += 1) {
    const lead = bytes[at] ?? 0;
    if (lead < 0x80) continue;
    const trail = bytes[at + 1] ?? 0;
    if (!isLead(lead) || trail < 0x40) return null;
    census.characters += 1;
    if (at !== runEnd) census.runs += 1;
    runEnd = at + 2;
    if (isCommon(lead)) census.common += 1;
    if (isKana(lead)) census.kana += 1;
    if (trail < 0x80) census.lowTrails += 1;
    census.maxLead = Math.max(census.maxLead, lead);
    if (first === -1) first = lead * 256 + trail;
    census.hasTwoDistinct ||= first !== lead * 256 + trail;
    at += 1;
  }
  return census;
}

function isValid(bytes: Uint8Array, { encoding }: Candidate): boolean {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
