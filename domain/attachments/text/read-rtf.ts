import { decodeText } from '../../mime/charset.ts';
import type { TextCollector } from './text-collector.ts';

/** Destinations that are not text of the document. Those that start with `\*` are skipped, too. */
const SKIPPED = new Set(
  'fonttbl colortbl stylesheet info pict object header headerl headerr headerf footer footerl footerr footerf listtable listoverridetable rsidtbl generator themedata datastore xmlnstbl fldinst bkmkstart bkmkend nonshppict'.split(
    ' ',
  ),
);
const CHARACTERS: Record<string, string> = {
  par: '\n',
  line: '\n',
  sect: '\n',
  page: '\n',
  row: '\n',
  tab: '\t',
  cell: '\t',
  emdash: '—',
  endash: '–',
  bullet: '•',
  lquote: '‘',
  rquote: '’',
  ldblquote: '“',
  rdblquote: '”',
  emspace: ' ',
  enspace: ' ',
};
/** A control word with its number, a byte in hexadecimal, a control symbol, a brace, or text. */
const TOKEN = /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|([^\\{}\r\n]+)/giy;
const MAX_DEPTH = 1_000;

interface Group {
  isSkipped: boolean;
  isHidden: boolean;
  /** How many characters repeat a `\u` for older programs. */
  fallbackLength: number;
}

/** Reads the text of an RTF document (version 1.9.1 of the specification). */
export function readRtf(bytes: Buffer, text: TextCollector): void {
  new RtfReader(bytes.toString('latin1'), text).read();
}

class RtfReader {
  readonly #source: string;
  readonly #text: TextCollector;
  readonly #outer: Group[] = [];
  #group: Group = { isSkipped: false, isHidden: false, fallbackLength: 1 };
  #charset = 'windows-1252';
  /** Consecutive bytes: a character may have several. */
  #bytes: number[] = [];
  /** Characters that only repeat the last `\u`. */
  #skip = 0;

  constructor(source: string, text: TextCollector) {
    this.#source = source;
    this.#text = text;
  }

  read(): void {
    const token = new RegExp(TOKEN);
    for (let at = 0; at < this.#source.length && !this.#text.isFull; ) {
      token.lastIndex = at;
      const match = token.exec(this.#source);
      if (match) this.#readToken(match);
      at = match ? this.#afterBinary(match, token.lastIndex) : at + 1;
    }
    this.#flush();
  }

  #readToken([, word, number, hex, symbol, brace, plain]: RegExpExecArray): void {
    if (hex !== undefined) this.#addByte(Number.parseInt(hex, 16));
    else if (plain !== undefined) for (const character of plain) this.#addByte(character.charCodeAt(0));
    else {
      this.#flush();
      if (word !== undefined) this.#readWord(word, number === undefined ? undefined : Number(number));
      else if (brace !== undefined) this.#readBrace(brace);
      else this.#readSymbol(symbol ?? '');
    }
  }

  #readBrace(brace: string): void {
    this.#skip = 0;
    if (brace === '}') this.#group = this.#outer.pop() ?? this.#group;
    else if (this.#outer.length < MAX_DEPTH) {
      this.#outer.push(this.#group);
      this.#group = { ...this.#group };
    }
  }

  #readWord(word: string, number: number | undefined): void {
    const group = this.#group;
    if (SKIPPED.has(word)) {
      group.isSkipped = true;
      if (word === 'pict' || word === 'object') this.#text.leaveOut('Images and embedded objects.');
    } else if (word === 'v') group.isHidden = number !== 0;
    else if (word === 'plain') group.isHidden = false;
    else if (word === 'uc') group.fallbackLength = Math.min(10, Math.max(0, number ?? 1));
    else if (word === 'ansicpg' && number !== undefined) this.#charset = charsetOf(number);
    else if (word === 'u' && number !== undefined) {
      this.#add(String.fromCharCode(number & 0xffff));
      this.#skip = group.fallbackLength;
    } else if (CHARACTERS[word] !== undefined) this.#add(CHARACTERS[word]);
  }

  #readSymbol(symbol: string): void {
    if (symbol === '*') this.#group.isSkipped = true;
    else if (symbol === '~') this.#add('\u00a0');
    else if (symbol === '_') this.#add('-');
    else if (symbol === '\n' || symbol === '\r') this.#add('\n');
    else if (symbol === '\\' || symbol === '{' || symbol === '}') this.#addByte(symbol.charCodeAt(0));
  }

  #addByte(octet: number): void {
    if (this.#skip > 0) this.#skip -= 1;
    else if (!this.#group.isSkipped) this.#bytes.push(octet);
  }

  #flush(): void {
    if (this.#bytes.length === 0) return;
    this.#add(decodeText(Uint8Array.from(this.#bytes), this.#charset));
    this.#bytes = [];
  }

  #add(text: string): void {
    const { isSkipped, isHidden } = this.#group;
    if (isHidden && !isSkipped) this.#text.leaveOut('Hidden text.');
    if (!isSkipped && !isHidden) this.#text.add(text);
  }

  /** `\binN` is followed by N raw bytes. */
  #afterBinary([, word, number]: RegExpExecArray, end: number): number {
    return word === 'bin' ? end + Math.max(0, Number(number ?? 0)) : end;
  }
}

const charsetOf = (codePage: number): string =>
  ({ 65001: 'utf-8', 932: 'shift_jis', 936: 'gbk', 949: 'euc-kr', 950: 'big5', 10000: 'macintosh' })[
    codePage
  ] ?? `windows-${codePage}`;
