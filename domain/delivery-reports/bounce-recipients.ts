import { findAddress, findAddresses } from './addresses-in-text.ts';
import type { Notice } from './bounce-notice.ts';
import { containsReason } from './bounce-phrases.ts';

/** A recipient that a notice reports on, with the text about it. */
export interface NoticeRecipient {
  /** Null if the notice does not name a recipient. */
  address: string | null;
  /** The text about this recipient; the whole notice if it cannot be separated. */
  detail: string;
}

const MAX_LINES = 2_000;
const MAX_LINE_CHARACTERS = 1_000;
const MAX_RECIPIENTS = 100;
const MAX_DETAIL_LINES = 15;
/** Score of a mention that almost certainly names a recipient, and the minimum score of the best mention. */
const CONFIDENT_SCORE = 5;
const MIN_SCORE = 3;
/** Mentions that score this much less than the best one are ignored. */
const MAX_SCORE_GAP = 5;

interface Mention {
  address: string;
  line: number;
  score: number;
}

/** Finds the recipients of a notice without a machine-readable part: X-Failed-Recipients, the text, the returned message. */
export function findRecipients(notice: Notice): NoticeRecipient[] {
  const failed = findAddresses((notice.fields.get('x-failed-recipients') ?? '').slice(0, 20_000));
  const lines = notice.text.split('\n', MAX_LINES).map((line) => line.slice(0, MAX_LINE_CHARACTERS));
  const mentions = findMentions(lines, notice);
  const named = failed.length > 0 ? failed : selectRecipients(mentions);
  const addresses = distinctAddresses(named).slice(0, MAX_RECIPIENTS);
  if (addresses.length > 0) {
    const addressKeys = new Set(addresses.map(toAddressKey));
    const relevantMentions = mentions.filter(({ address }) => addressKeys.has(toAddressKey(address)));
    return addresses.map((address) => ({
      address,
      detail: extractDetail(address, lines, relevantMentions) || notice.text,
    }));
  }
  const address =
    findReturnedRecipient(notice) ?? findAliasedRecipient(lines) ?? findLocalRecipient(lines, notice);
  return [{ address, detail: notice.text }];
}

/**
 * Exim writes this if the address to which it forwards is secret:
 * `an undisclosed address (generated from anna@example.com)`.
 */
function findAliasedRecipient(lines: readonly string[]): string | null {
  const line = lines.find((text) => GENERATED_FROM.test(text));
  return line === undefined ? null : (findAddressesOnLine(line)[0] ?? null);
}

const GENERATED_FROM = /\b(?:generated|expanded|forwarded) from\b.{0,20}@/i;

/**
 * Servers that name only the mailbox, on the line below `to the following recipients:`, mean a mailbox in their own
 * domain.
 */
function findLocalRecipient(lines: readonly string[], { fields }: Notice): string | null {
  const domain = /@([\w.-]{3,255})/.exec(fields.get('from') ?? '')?.[1];
  const intro = lines.findIndex((line) => LOCAL_INTRO.test(line));
  const from = fields.get('from') ?? '';
  if (domain === undefined || intro === -1 || !/mailer-daemon|postmaster/i.test(from.slice(0, 500)))
    return null;
  const below = lines
    .slice(intro + 1, intro + 5)
    .find((line) => line.trim() !== '' && !line.trim().endsWith(':'));
  const name = /^\s{0,20}([\w.+-]{2,64})\s{0,20}$/.exec(below ?? '')?.[1];
  return name === undefined ? null : `${name}@${domain}`;
}

const LOCAL_INTRO =
  /(?:the |to )following (?:recipient|address|user|mailbox)|not delivered to|could not be delivered to/i;

/** Finds the recipient in the returned message or in a VERP address; null if there is none or more than one. */
export function findReturnedRecipient({
  fields,
  returnedFields: original,
  returnedText: rest,
}: Notice): string | null {
  for (const name of [
    'x-failed-recipients',
    'x-original-to',
    'delivered-to',
    'envelope-to',
    'x-envelope-to',
    'x-rcpt-to',
  ]) {
    const address = findAddress(original.get(name) ?? '');
    if (address && !isReturnPathOf(address, fields)) return address;
  }
  const to = distinctAddresses(findAddresses((original.get('to') ?? '').slice(0, 20_000)));
  if (to[0] !== undefined && isToList(to[0], fields, original)) return decodeVerpRecipient(fields);
  if (to.length === 1 && !original.has('cc')) return to[0] ?? null;
  const received = /\bfor <?([^\s<>;]{1,200}@[^\s<>;]{1,200})>?/i.exec(
    original.get('received') ?? rest.slice(0, 5_000),
  );
  return received?.[1] ?? to[0] ?? decodeVerpRecipient(fields) ?? null;
}

/** Whether the message went to a mailing list, which is not the recipient whose address failed. */
function isToList(to: string, fields: Map<string, string>, original: Map<string, string>): boolean {
  return (
    isReturnPathOf(to, fields) || ['list-id', 'list-post', 'mailing-list'].some((name) => original.has(name))
  );
}

/** `offers-bounces@example.com` receives the notices on messages of the list `offers@example.com`. */
function isReturnPathOf(address: string, fields: Map<string, string>): boolean {
  const list = address.slice(0, address.lastIndexOf('@')).toLowerCase();
  const path = (fields.get('to') ?? '').slice(0, 2_000).toLowerCase();
  return ['-bounces', '-admin', '-owner', '-request', '-errors'].some((end) =>
    path.includes(`${list}${end}`),
  );
}

/** VERP: `list-bounces+user=example.org@…` contains the recipient. */
function decodeVerpRecipient(fields: Map<string, string>): string | null {
  const path = [fields.get('to'), fields.get('delivered-to'), fields.get('x-original-to')]
    .join(' ')
    .slice(0, 2_000);
  const found = /[+-]([\w.-]{1,64})=([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8})@/i.exec(path);
  return found ? `${found[1]}@${found[2]}` : null;
}

/** Selects the addresses whose best mention has a sufficient score. */
function selectRecipients(mentions: Mention[]): string[] {
  const best = new Map<string, Mention>();
  for (const mention of mentions) {
    const known = best.get(toAddressKey(mention.address));
    if (!known || mention.score > known.score) best.set(toAddressKey(mention.address), mention);
  }
  const top = Math.max(0, ...[...best.values()].map(({ score }) => score));
  if (top < MIN_SCORE) return [];
  const minScore = top >= CONFIDENT_SCORE ? Math.max(CONFIDENT_SCORE, top - MAX_SCORE_GAP) : top;
  return [...best.values()].filter(({ score }) => score >= minScore).map(({ address }) => address);
}

/** Labels in front of a recipient's address, in several languages. */
const LABEL_BEFORE =
  /(?:^|[\s(>:<,"'*-])(?:(?:final|original|failed|intended|delivery|undeliverable|invalid|unknown|bad|local|remote|rcpt|addressed|deliver(?:y|ed)?|sent|message|mail|the|following|your|reach|affected)[ -]?){0,3}(?:recipients?|recipient\(s\)|addressees?|address(?:es)?|rcpt|to|for|users?|user ?name|user ?id|smtp|mail ?box|account|e-?mail|destinat(?:aire|ario|ion|ário)s?|adresse|an|für|empf[äa]nger|para|aan|naar|ontvanger|à|a|получател\S{1,4}|адрес\S{0,4}|кому|пользовател\S{0,4}|宛先|あて先|送信先|受信者|アドレス|收件人|收件者|地址)(?: ?(?:address|adresse|name|is|\(s\)))?[\s:：=<"'([,>→-]{0,8}$/iu;
const SENDER_BEFORE =
  /(?:^|[\s(:<,"'-])(?:from|sender|sent by|reply-to|return-path|message-?id|in-reply-to|references|contact|mailto|e-?mail us at|write to|questions?|help|support|on behalf of|von|absender|de(?: la part de)?|exp[ée]diteur|remitente|mittente|afzender|от|отправител\S{1,4}|差出人|送信者|发件人|寄件者|by|id|forward(?:ed|ing)? (?:this|it|the \S+) to|please (?:contact|e-?mail|send|forward)|administrator)[\s:：=<"'([,-]{0,6}$/iu;
const SENDER_LINE =
  /^[\s>*-]*(?:from|mail from|sender|date|message-?id|subject|reply-to|return-path|x-[\w-]+|mime-version|content-[\w-]+|received|references|sent|von|absender|de|da|от|差出人|betreff|objet|asunto|reporting-mta|with message)\s*[:：]|^(?:>>>|sent <<<)?\s*mail from:/iu;
const LINE_START =
  /^[\s>*•·#"'<([\-|]*(?:(?:smtp|mailto|rfc822|e-?mail|to)[:;]\s*|[45]\d\d[ -]{1,2}(?:#?[45]\.\d\.\d{1,3} )?)?[\s"'<([]*$/i;
const LINE_END = /^[\s>:;,"')\].-]*$/;
const INTRO =
  /(?::|：)[\s-]*$|recipient|address|following|could not|cannot|fail|undeliver|unable|unzustellbar|empfänger|zugestellt|destinat|entreg|remis|consegn|bezorgd|доставл|адрес|получател|宛先|アドレス|配信|届け|收件人|地址|problem|fatal|transcript|error/iu;
const SERVICE_NAMES =
  /^(?:post-?master|mailer-?daemon|mail-?daemon|abuse|support|help-?desk|hostmaster|no-?reply|do-?not-?reply|webmaster|security|info-?tech|unblock|delist|removal|noc|bounces?)\b/i;

function findMentions(lines: string[], notice: Notice): Mention[] {
  const returnedTo = new Set(
    ['to', 'cc', 'x-original-to', 'delivered-to', 'envelope-to']
      .flatMap((name) => findAddresses((notice.returnedFields.get(name) ?? '').slice(0, 5_000)))
      .map(toAddressKey),
  );
  const senders = new Set(
    [
      ...['to', 'from', 'delivered-to', 'envelope-to'].map((name) => notice.fields.get(name)),
      ...['from', 'sender', 'reply-to', 'return-path'].map((name) => notice.returnedFields.get(name)),
    ]
      .flatMap((value) => findAddresses((value ?? '').slice(0, 5_000)))
      .map(toAddressKey),
  );
  let before = '';
  const mentions: Mention[] = [];
  for (const [line, text] of lines.entries()) {
    if (text.includes('@')) {
      const lineTraits = describeLine(lines, line, before);
      let from = 0;
      for (const address of findAddressesOnLine(text)) {
        const at = text.indexOf(address, from);
        from = at + address.length;
        const score =
          scoreContext({ ...lineTraits, before: text.slice(0, at), after: text.slice(from) }) +
          (returnedTo.has(toAddressKey(address)) ? 3 : 0) -
          (senders.has(toAddressKey(address)) && !returnedTo.has(toAddressKey(address)) ? 8 : 0) -
          (SERVICE_NAMES.test(address) ? 5 : 0);
        mentions.push({ address, line, score });
      }
    }
    if (text.trim() !== '') before = text;
  }
  return mentions;
}

/** Recognizes internationalized addresses only in angle brackets; elsewhere, only ASCII addresses. */
function findAddressesOnLine(line: string): string[] {
  // Exchange 5.5: `dda:SMTP=anna@example.com;`.
  const text = line.replace(/\b(?:smtp|rfc-?822)=/gi, (type) => ' '.repeat(type.length));
  const bracketed = [...text.matchAll(/<((?:"[^"\n]{1,64}"|[^\s<>"@]{1,64})@[^\s<>@]{1,255})>/g)].map(
    ([, address = '']) => address.replace(/^(?:smtp|mailto|rfc822)[:;]/i, ''),
  );
  return [
    ...bracketed,
    ...findAddresses(text.replace(/<[^<>\s]{1,330}>/g, (whole) => (whole.includes('@') ? '' : whole))),
  ];
}

/**
 * Properties of a line that apply to every address on it. Determined once, because a line may contain hundreds of
 * addresses.
 */
interface LineTraits {
  isIntroduced: boolean;
  hasReason: boolean;
  /** Whether the line or one of the next three contains a reason. */
  hasReasonNearby: boolean;
  namesSender: boolean;
}

function describeLine(lines: string[], line: number, lineBefore: string): LineTraits {
  const text = lines[line] ?? '';
  return {
    isIntroduced: INTRO.test(lineBefore.slice(-200)),
    hasReason: containsReason(text),
    hasReasonNearby: containsReason([text, ...lines.slice(line + 1, line + 4)].join('\n')),
    namesSender: SENDER_LINE.test(text),
  };
}

interface MentionContext extends LineTraits {
  before: string;
  after: string;
}

function scoreContext({
  before,
  after,
  isIntroduced,
  hasReason,
  hasReasonNearby,
  namesSender,
}: MentionContext): number {
  const near = before.slice(-80);
  // This is the recipient before forwarding. The server tried a different address.
  if (/(?:generated from|original address:)\s*<?$/i.test(near)) return -10;
  const startsLine = LINE_START.test(before.slice(0, 200)) && before.length < 200;
  const indicators: [points: number, isPresent: boolean][] = [
    [4, startsLine],
    [2, startsLine && LINE_END.test(after)],
    [2, !startsLine && before.trimEnd().endsWith('<') && LINE_END.test(after)],
    [4, !startsLine && LABEL_BEFORE.test(near)],
    [2, isIntroduced],
    [3, hasReason],
    [1, hasReasonNearby],
    [-6, SENDER_BEFORE.test(near) && !/rcpt to[\s:<]*$/i.test(near)],
    [-6, namesSender],
  ];
  return indicators.reduce((sum, [points, isPresent]) => sum + (isPresent ? points : 0), 0);
}

/** Returns the passages that start at a line with this address and end before a line with another one. */
function extractDetail(address: string, lines: string[], mentions: Mention[]): string {
  const selectedLines = new Set<number>();
  const others = new Set(
    mentions.filter((mark) => toAddressKey(mark.address) !== toAddressKey(address)).map(({ line }) => line),
  );
  for (const { line } of mentions
    .filter((mark) => toAddressKey(mark.address) === toAddressKey(address))
    .slice(0, 10)) {
    selectedLines.add(line);
    for (
      let next = line + 1;
      next < line + MAX_DETAIL_LINES && next < lines.length && !others.has(next);
      next += 1
    )
      selectedLines.add(next);
  }
  return [...selectedLines]
    .toSorted((a, b) => a - b)
    .map((line) => lines[line])
    .join('\n')
    .trim();
}

function distinctAddresses(addresses: string[]): string[] {
  return [...new Map(addresses.map((address) => [toAddressKey(address), address])).values()];
}

function toAddressKey(address: string): string {
  return address.toLowerCase();
}
