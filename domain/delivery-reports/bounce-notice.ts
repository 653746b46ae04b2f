import { decodeEncodedWords } from '../mime/encoded-words.ts';
import { htmlToText } from '../mime/html-to-text.ts';
import { findEnhancedCode, findReason, findReplyCode } from './bounce-phrases.ts';
import { separateDescription } from './described-message.ts';
import { decodeContent, type LeafPart, parseFields, parseHeaderFields } from './leaf-parts.ts';

/** A message that may be a bounce notice, split into the notice and the returned message. */
export interface Notice {
  /** Header fields of the message: lower-case names, the first value of each. */
  fields: Map<string, string>;
  /** Decoded. */
  subject: string;
  /** The notice without the returned message below it, and without the fields that describe that message. */
  text: string;
  /** The text of the returned message; empty if the notice does not contain one. */
  returnedText: string;
  /**
   * Header fields of the returned message, otherwise the fields with which the notice describes it; empty if there are
   * none.
   */
  returnedFields: Map<string, string>;
}

/** Real notices are far shorter. */
const MAX_NOTICE_CHARACTERS = 100_000;
const MAX_LINES = 3_000;
const RETURNED_TYPES =
  /^(?:message\/(?:rfc822|global)(?:-headers)?|text\/rfc822-headers?|message\/(?:partial|external-body))$/;

/** Separates the notice from the returned message. */
export function parseNotice(fields: Map<string, string>, leaves: LeafPart[]): Notice {
  const returned = leaves.find(({ contentType }) => RETURNED_TYPES.test(contentType));
  const {
    lines: all,
    rest,
    header,
  } = splitReturnedMessage(extractText(leaves).slice(0, MAX_NOTICE_CHARACTERS));
  const { lines, description } = separateDescription(all);
  const described = header.size > 0 ? header : parseFields(description.join('\n'));
  return {
    fields,
    subject: decodeEncodedWords(fields.get('subject') ?? ''),
    text: lines.join('\n'),
    returnedText: rest,
    returnedFields: returned
      ? parseHeaderFields(Buffer.from(returned.content.replace(/^\n+/, ''), 'latin1'))
      : described,
  };
}

/** Uses plain text if there is any, else HTML. Parts of unknown types count as text. */
function extractText(leaves: LeafPart[]): string {
  const isText = ({ contentType }: LeafPart) =>
    /^(?:text(?:\/(?!html|rfc822|calendar|x-vcard)|$)|multipart\/)/.test(contentType) ||
    !contentType.includes('/');
  const plain = leaves.filter(isText).map(decodeContent).join('\n\n');
  if (plain.trim() !== '') return plain;
  return leaves
    .filter(({ contentType }) => contentType === 'text/html')
    .map((leaf) => htmlToText(decodeContent(leaf)))
    .join('\n\n');
}

/** A line that announces a returned message. Valid only if a header follows. */
const RETURNED_BELOW = new RegExp(
  [
    String.raw`(?:copy|header|headers|beginning|text|part|portion|body|content|contents|lines|transcript)\b.{0,60}\b(?:message|mail|e-?mail)`,
    '(?:original|unsent|returned|undelivered|undeliverable|rejected|failed|bounced|non-?delivered) (?:message|mail|e-?mail)(?: (?:header|text|info|information|body|content)s?)?',
    'message headers?(?: follow.{0,20})?',
    String.raw`below (?:this line|is|are)\b.{0,60}`,
    "(?:Original|urspr).{0,12}nachricht|message d'origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht",
    'исходное (?:сообщение|письмо)|заголов|元のメ|原メール|送信メール|元のメッセージ|以下.{0,20}(?:メール|メッセージ)|原始邮件|原邮件|原始郵件',
  ].join('|'),
  'iu',
);
const HEADER_LINE =
  /^(?:return-path|received|from|to|cc|date|message-id|subject|mime-version|delivered-to|reply-to|sender|dkim-signature|content-type|content-transfer-encoding|authentication-results|x-[\w-]{1,60}|list-[\w-]{1,40}|thread-(?:topic|index)|in-reply-to|references|arc-[\w-]{1,40}|user-agent|precedence|importance)[ \t]*:/i;
/** Fields that a notice does not list when it describes a message. */
const TRACE_LINE = /^(?:return-path|received|message-id|mime-version|dkim-signature|x-[\w-]{1,60}):/i;

/**
 * Finds the start of the returned message: below a line that announces it, or at a header with fields that a notice
 * would not list.
 */
function splitReturnedMessage(text: string): { lines: string[]; rest: string; header: Map<string, string> } {
  const lines = text.replace(/\r\n?/g, '\n').split('\n', MAX_LINES);
  let isRecipientNamed = false;
  for (const [at, line] of lines.entries()) {
    isRecipientNamed ||= line.includes('@');
    const announced =
      line.length < 200 && RETURNED_BELOW.test(line) && !/^[ \t]*the original message was/i.test(line);
    const start = announced
      ? findHeaderStart(lines, at + 1)
      : HEADER_LINE.test(line) && isTraceHeader(lines, at)
        ? at
        : -1;
    if (start === -1) {
      if (!(announced && isRecipientNamed && FRAMED.test(line))) continue;
      return { lines: lines.slice(0, at), rest: lines.slice(at + 1).join('\n'), header: new Map() };
    }
    return {
      lines: lines.slice(0, announced ? at : start),
      rest: lines.slice(start).join('\n'),
      header: parseFields(readHeaderBlock(lines, start)),
    };
  }
  return { lines, rest: '', header: new Map() };
}

/** `--- Below this line is a copy of the message.` */
const FRAMED = /^[\s>|]{0,20}[-=_*+]{3}/;

/** Finds a header within the next few lines, which may be quoted or indented. */
function findHeaderStart(lines: string[], from: number): number {
  for (let at = from; at < Math.min(lines.length, from + 6); at += 1) {
    const line = stripQuoteMarks(lines[at] ?? '');
    if (HEADER_LINE.test(line)) return countHeaderLines(lines, at) >= 2 ? at : -1;
    if (/[\p{L}\p{N}]/u.test(line) && !/^(?:from |-|=|\*)/i.test(line)) return -1;
  }
  return -1;
}

function isTraceHeader(lines: string[], at: number): boolean {
  const block = readHeaderBlock(lines, at).split('\n');
  return (
    block.filter((line) => HEADER_LINE.test(line)).length >= 3 && block.some((line) => TRACE_LINE.test(line))
  );
}

function countHeaderLines(lines: string[], at: number): number {
  return readHeaderBlock(lines, at)
    .split('\n')
    .filter((line) => HEADER_LINE.test(line)).length;
}

/** Returns the lines of a header without quote marks, at most 200. */
function readHeaderBlock(lines: string[], start: number): string {
  const indent = /^[> \t|]*/.exec(lines[start] ?? '')?.[0].length ?? 0;
  const block: string[] = [];
  for (const line of lines.slice(start, start + 200)) {
    const bare = line.slice(0, indent).trim().replaceAll('>', '') === '' ? line.slice(indent) : line;
    if (bare.trim() === '') break;
    block.push(bare);
  }
  return block.join('\n');
}

function stripQuoteMarks(line: string): string {
  return line.replace(/^[> \t|]+/, '');
}

const DAEMON_NAMES =
  /mailer[-_ ]?daemon|mail[-_ .]?daemon|\bpost[-_ ]?master|mail delivery (?:sub)?system|\bmaildelivery|mail[-_. ]delivery|delivery[-_. ](?:status|report|notification|failure|subsystem|service)|\bmdaemon\b|double-bounce|system administrator|mail (?:administrator|system|router|server|transport|gateway)|microsoft ?exchange|internet mail (?:delivery|service)|\bmmdf\b|\bpmdf\b|\bbounces?[-+@]|bounce-?handler|undeliver|nicht zustellbar|\bsmtp(?:d|server)?@|\be-?mail[- ]?(?:gateway|filter|security|system|protection)|mailmarshal|groupwise|\bnotes?-?(?:router|mail)|mail-?router|\badmin(?:istrator)?@|non[- ]?delivery|mxlogic|no-?reply@.*(?:amazonses|zoho)|メール(?:配信|サーバ)|uucp@|exim@|qmail|root@|listserv|mailman|majordomo|-(?:owner|admin|bounces?)@|owner-/iu;
/** The name of a program that only returns mail. */
const MAILER_DAEMON = /mailer[-_ ]?daemon|mail delivery (?:sub)?system/i;
/** `Your message could not be delivered to`, and the address on a separate line. */
const FAILURE_ABOVE_ADDRESS =
  /(?:not|n['’]t|pas|nicht|non?|não|niet|unable to|undeliverable|failed)\b(?:[^@.!?]|[.!?](?=\S)){0,200}(?:[:：]|\b(?:to|à|a|an|para|naar|til|till)) ?\n(?:[ \t]{0,20}\n)?[ \t>*-]{0,20}<?[^\s<>@]{1,64}@[a-z\d][a-z\d.-]{1,250}>?[ \t]{0,20}(?:\n|$)/iu;
/** Parcel carriers also write about failed deliveries. */
const PARCEL =
  /\b(?:parcels?|packages?|shipments?|couriers?|tracking number|paket|sendung|colis|paquete|pacco|pakket)\b/i;
const BOUNCE_SUBJECT =
  /^(?!\s*(?:re|fwd?|aw|wg|sv|vs|antw|tr|rv)\s*:).{0,80}(?:undeliver|not? delivered|undelivered|non[- ]?delivery|delivery (?:status|failure|failed|report|notification|has failed|error|problem|unsuccessful|incomplete|delayed)|(?:mail|message|e-?mail) (?:delivery|could not|delivered|not deliv|error|status report|system error|undeliv|failure|bounced|rejected|returned|has been (?:rejected|returned|blocked)|blocked|delayed|transport|warning)|returned (?:mail|message|e-?mail|to sender)|failure notice|failed (?:mail|delivery|message|to deliver)|(?:could|can|was|is) ?not (?:be )?(?:send|sent|deliver)|bounced? (?:mail|message|notice)|\bbounce\b|permanent (?:error|failure|delivery)|(?:mail|message|delivery|e-?mail) (?:has )?failed|processing error|return(?:ed|ing) (?:mail |message )?to (?:the )?sender|unzustellbar|nicht zugestellt|zustell(?:ung|fehler|status)|unable to deliver|unknown (?:user|recipient|address)|user unknown|mailbox (?:full|unavailable)|mail system error|invalid (?:recipient|address|mail)|rejected (?:mail|message)|message status|non remis|non délivr|échec|remise|no se (?:ha )?(?:pudo|podido) entregar|no entregad|entrega|devolvid|devuelto|não (?:foi )?entregue|mancata consegna|impossibile|consegna|niet (?:be)?zorgd|onbestelbaar|bestelbaar|недостав|не доставлен|доставк|возвращ|配信|配送|送信(?:エラー|でき|失敗)|届けでき|不達|返送|エラーメール|退信|投递|退件|无法投递|無法傳遞|系统退信|undeliverable|considered unsolicited|virus .{0,80}(?:from|by) you|banned contents? from you|warning|delay|ndn:|ndr:|hi,? this is the)/iu;
const BOUNCE_OPENING =
  /intended recipient:|failed (?:addresses|recipients) follow|no valid recipients|(?:mail|message) has been returned because|did not receive (?:this|your|the) message|(?:was|were|has been|have been|could|can) (?:not|n't) (?:be )?(?:delivered|sent|reached|accepted|forwarded)|this is the qmail-send program|this message was created automatically by (?:the )?(?:mail|e-?mail|smtp)|this is (?:the|an automatic\S* |an? automated )?(?:\S+ ){0,3}(?:mail (?:system|delivery)|mailer-daemon|mail system at host|postmaster|dragonfly mail agent)|a message that you (?:have )?sent (?:could not be|to the following|was|has not)|your (?:message|mail|e-?mail)(?: \S{1,200}){0,6} (?:did not reach|could not be|cannot be|couldn't be|was not|wasn't|can't be|has not been|is undeliverable|has been (?:rejected|blocked|returned|delayed)|was (?:rejected|undeliverable|blocked|refused))|delivery to the following (?:recipient|address)|the following (?:\S+ ){0,4}(?:address|recipient|message|user|destination)\S* (?:had|failed|could|cannot|has|have|was|were|to|for|did)|unable to deliver|could(?: not|n't) (?:be )?deliver|undeliverable (?:mail|message|address)|transcript of (?:the )?session|(?:recipient|destination) address(?:es)? (?:had|rejected)|unable to (?:send|relay|route)|I'm afraid I wasn't able to deliver|delivery (?:has )?failed|the (?:message|e?-?mail) (?:that )?you sent|non[- ]delivery report|undelivered mail|delivery status notification|was not delivered|returned to (?:the )?sender|user mailbox exceeds|unknown user:|could not be (?:sent|delivered|reached)|delivery of (?:the |your )?e?-?mail was stopped|was considered unsolicited|konnte nicht (?:an |zu)|nicht zugestellt|n['’]a (?:pas )?(?:pu|été) ?(?:être|etre|pas|remis|délivr|distribu)|n['’]est pas parvenu|n'ont pas pu|no (?:se ha podido|se pudo|ha podido|pudo) (?:ser )?entreg|não (?:pôde|foi possível|pode)(?: ser)? entreg|non è stato (?:possibile|recapitato|consegnato)|kon niet worden|не (?:было|может быть|удалось|доставлено)|お?届けでき|送信(?:でき|に失敗)|配信(?:でき|に失敗|不能)|配送(?:でき|に失敗)|送達でき|无法(?:投递|送达|发送)|無法(?:傳遞|送達|投遞)|被退回|退信/iu;

/** Whether the From field names a mail system. */
export function isFromDaemon({ fields }: Notice): boolean {
  const from = decodeEncodedWords(fields.get('from') ?? '');
  return DAEMON_NAMES.test(from.slice(0, 500)) || from.trim() === '' || from.includes('<>');
}

/** Whether this is a non-delivery notice. Requires several indicators, because people also write about bounces. */
export function isBounceNotice(notice: Notice): boolean {
  return scoreBounce(notice) >= MIN_BOUNCE_SCORE;
}

const MIN_BOUNCE_SCORE = 4;

function scoreBounce(notice: Notice): number {
  const { fields, subject, text } = notice;
  const indicators: [points: number, isPresent: boolean][] = [
    [4, fields.has('x-failed-recipients')],
    [2, isFromDaemon(notice)],
    [1, MAILER_DAEMON.test((fields.get('from') ?? '').slice(0, 500))],
    [1, /^<?>?$/.test(fields.get('return-path')?.trim() ?? 'none')],
    [2, /multipart\/report/i.test(fields.get('content-type') ?? '')],
    [2, BOUNCE_SUBJECT.test(subject.slice(0, 300))],
    [2, BOUNCE_OPENING.test(text.slice(0, 3_000))],
    [2, FAILURE_ABOVE_ADDRESS.test(text.slice(0, 1_000))],
    [1, DELAY_TEXT.test(text.slice(0, 10_000))],
    [-3, PARCEL.test(`${subject.slice(0, 300)} ${text.slice(0, 3_000)}`)],
    [1, /^auto-(?:generated|replied)/i.test(fields.get('auto-submitted') ?? '')],
    [1, notice.returnedFields.size > 1],
    [1, findEnhancedCode(text) !== null || findReplyCode(text) !== null],
    [1, findReason(text) !== null],
  ];
  return indicators.reduce((sum, [points, isPresent]) => sum + (isPresent ? points : 0), 0);
}

const AUTO_REPLY_SUBJECT =
  /^\s*(?:(?:re|aw|sv)\s*:\s*)?(?:\[?auto(?:matic(?:ally)?|mated)?[\s_:-]*(?:reply|response|antwort|respon\w*|generated reply|answer|re:)|auto\s*:|out[ -]of[ -](?:the[ -])?office|ooo\b|\(?vacation|on (?:vacation|holiday|leave)|away from|i am (?:away|out)|abwesen|automatische? (?:antwort|afwezig)|automatisch antwoord|afwezig|réponse automatique|absen|respuesta autom|fuera de|resposta autom|ausen|risposta autom|fuori (?:sede|ufficio)|自動(?:応答|返信)|不在|自动(?:回复|答复)|自動回覆|автоответ|автоматический ответ|автоматична відповідь|\[?automatyczna odpowiedź|automatisk(?:t)? (?:svar|svar:)|automaattinen vastaus|poissa|frånvar|fravær|automatická odpověď|automatikus válasz|otomatik yanıt|răspuns automat|αυτόματη απάντηση|자동 ?(?:응답|회신)|תשובה אוטומטית|رد تلقائي|auto[- ]?svar)/iu;

/** Whether this is an automatic reply (RFC 3834), a read receipt or a challenge, none of which reports a delivery. */
export function isAutoReply(notice: Notice): boolean {
  const { fields, subject, text } = notice;
  if (/\/disposition-notification|report-type="?disposition/i.test(fields.get('content-type') ?? ''))
    return true;
  if (fields.has('x-failed-recipients')) return false;
  if (AUTO_REPLY_SUBJECT.test(subject.slice(0, 300))) return true;
  if (
    /challenge|tmda|boxtrapper|please confirm|confirm (?:your|that you)|verif(?:y|ication)|requires? confirmation/i.test(
      subject,
    )
  )
    return /\b(?:confirm|verify|click|reply to this|authenticate)/i.test(text);
  if (isFromDaemon(notice)) return false;
  return (
    /^auto-replied/i.test(fields.get('auto-submitted') ?? '') ||
    /^(?:auto_?reply|vacation)/i.test(fields.get('precedence') ?? '') ||
    ['x-autoreply', 'x-autorespond', 'x-autogenerated', 'x-vacation', 'x-autoresponder'].some((name) =>
      fields.has(name),
    )
  );
}

const DELAY_SUBJECT =
  /\b(?:delay(?:ed)?|deferred|still being retried)\b|warning[: -].{0,60}(?:could not|cannot|not (?:yet )?(?:been )?(?:sent|delivered)|message|mail)|verz[öo]ger|retard[ée]|retras|ritard|atras(?:o|ad)|vertraag|遅延|遅れ|延迟|延遲|задерж/iu;
const DELAY_TEXT =
  /\b(?:this is a warning (?:message|only)|will (?:keep|continue) (?:to )?(?:try|trying|be (?:tried|made|attempted)|attempt|retry)|will be retried|still trying|delivery attempts will continue|do not need to (?:resend|re-send|send)|no action is required|(?:has|have) (?:not yet been delivered|been delayed)|not yet been delivered|delivery (?:is|has been|was) delayed|will (?:re-?try|try again)|will be re-?attempted|could not be delivered for (?:the (?:last|past) |more than )?\d+|has been (?:queued|deferred))\b|wird (?:weiter|erneut) versucht|nouvelle tentative|se (?:volverá|seguirá) a? ?intent|再送(?:します|を試み|を続け)|повторн\S{0,4} попыт/iu;
const FINAL_TEXT =
  /\b(?:(?<!before )giv(?:en|ing) up|gave up|permanent(?:ly)? (?:error|fail|fatal)\S*|failed permanently|is a permanent|no further (?:delivery )?attempts|will not (?:be )?(?:retr|try)\S*|not going to try|(?:has been|was) (?:returned|removed)|(?<!if (?:it|this|the message|your message) )(?:is|are|was) undeliverable|(?<!will be )returned to (?:the )?sender)\b/i;

/** Whether the message is delayed and the server will retry. The subject counts only if the text is inconclusive. */
export function isDelayNotice({ subject, text }: Notice): boolean {
  const searched = text.slice(0, 10_000);
  if (FINAL_TEXT.test(searched)) return false;
  if (DELAY_TEXT.test(searched)) return true;
  if (/\bfail(?:ure|ed)\b|undeliver/i.test(subject)) return false;
  return DELAY_SUBJECT.test(subject.slice(0, 300));
}

/** Whether the message was delivered, or relayed to a server that sends no reports. */
export function isSuccessNotice({ subject, text }: Notice): boolean {
  return (
    /\((?:success|relay)|success(?:ful)?(?:ly)? (?:mail )?deliver|delivery (?:receipt|successful)|^(?:relayed|delivered):/i.test(
      subject,
    ) && /\b(?:delivered|relayed|successfully)\b/i.test(text)
  );
}
