import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Notice } from '../../domain/delivery-reports/bounce-notice.ts';
import type { LeafPart } from '../../domain/delivery-reports/leaf-parts.ts';
import type { Line } from '../../domain/mime/quotes/lines.ts';

/** Calls a function with a hostile text, in one of the places where a stranger's text can be. */
export interface Call {
  (text: string): unknown;
  /** Only the length of the text matters, so that one text is enough. */
  readsLengthAlone?: true;
}
// biome-ignore lint/suspicious/noExplicitAny: the exports of a module are only known at run time.
type Functions = Record<string, any>;
type Adapters = Record<string, (exported: Functions) => Call[]>;

/** For a text of its own. */
const ofLength = (call: (length: number) => unknown): Call =>
  Object.assign((text: string) => call(text.length), { readsLengthAlone: true as const });

const bytes = (text: string) => Buffer.from(text);
const stream = (text: string) =>
  Readable.from(
    (function* () {
      const all = bytes(text);
      for (let at = 0; at < all.length; at += 65_536) yield all.subarray(at, at + 65_536);
    })(),
  );
const fields = (text: string, ...names: string[]) => new Map(names.map((name) => [name, text]));
const leaf = (contentType: string, content: string): LeafPart => ({
  contentType,
  fields: new Map([['content-type', contentType]]),
  content: bytes(content).toString('latin1'),
});
const notice = (changes: Partial<Notice>): Notice => ({
  fields: new Map(),
  subject: '',
  text: '',
  returnedText: '',
  returnedFields: new Map(),
  ...changes,
});
/** The places of a message: all of it, its fields, its bodies and its parts. */
const messages: ((text: string) => string)[] = [
  (text) => text,
  (text) => `From: ${text}\r\n\r\n`,
  (text) => `From: a@b.example\r\nSubject: ${text}\r\nTo: ${text}\r\nReferences: ${text}\r\n\r\nbody`,
  (text) => `From: a@b.example\r\nContent-Type: ${text}\r\nContent-Disposition: ${text}\r\n\r\nbody`,
  (text) => `From: a@b.example\r\n\r\n${text}`,
  (text) => `Content-Transfer-Encoding: quoted-printable\r\n\r\n${text}`,
  (text) => `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n${text}\r\n--b--\r\n`,
  (text) => `From: MAILER-DAEMON\r\nSubject: failure notice\r\nContent-Type: message/rfc822\r\n\r\n${text}`,
];
const inMessages = (call: (message: string) => unknown): Call[] =>
  messages.map((place) => (text) => call(place(text)));
const inNotices = (call: (given: Notice) => unknown): Call[] => [
  (text) => call(notice({ text })),
  (text) => call(notice({ subject: text, fields: fields(text, 'from', 'content-type', 'precedence') })),
  (text) => call(notice({ returnedText: text, returnedFields: fields(text, 'to', 'received', 'from') })),
  (text) => call(notice({ fields: fields(text, 'x-failed-recipients', 'to', 'delivered-to') })),
];
const toLines = (text: string): Line[] =>
  text
    .split('\n')
    .map((raw) => ({ raw, text: raw.slice(0, 1_000).trim(), kind: raw.trim() ? 'text' : 'blank' }));

/** For rules that read a line of at most a thousand characters. */
const inLines = (call: (line: string) => unknown): Call[] => [
  (text) => {
    for (let at = 0; at < text.length; at += 1_000) call(text.slice(at, at + 1_000));
  },
];
const HEADER = { subject: '', from: null, headers: {} };
const NO_BODY = { text: null, html: null };
const ANCHOR = { href: 'https://a.example/', words: '', before: '', isQuoted: false };

/** How to call each exported function that takes a stranger's bytes or text, by module and name. */
export const ADAPTERS: Record<string, Adapters> = {
  'delivery-reports/addresses-in-text': {
    findAddress: ({ findAddress }) => [(text) => findAddress(text)],
    findAddresses: ({ findAddresses }) => [(text) => findAddresses(text)],
  },
  'delivery-reports/bounce-notice': {
    parseNotice: ({ parseNotice }) => [
      (text) => parseNotice(fields(text, 'subject'), []),
      ...['text/plain', 'text/html', 'message/rfc822', 'text/rfc822-headers'].map(
        (type) => (text: string) => parseNotice(new Map(), [leaf(type, text)]),
      ),
    ],
    isFromDaemon: ({ isFromDaemon }) => inNotices(isFromDaemon),
    isBounceNotice: ({ isBounceNotice }) => inNotices(isBounceNotice),
    isAutoReply: ({ isAutoReply }) => inNotices(isAutoReply),
    isDelayNotice: ({ isDelayNotice }) => inNotices(isDelayNotice),
    isSuccessNotice: ({ isSuccessNotice }) => [
      ...inNotices(isSuccessNotice),
      (text) => isSuccessNotice(notice({ subject: '(success)', text })),
    ],
  },
  'delivery-reports/bounce-phrases': {
    findReason: ({ findReason }) => [(text) => findReason(text)],
    findEnhancedCode: ({ findEnhancedCode }) => [(text) => findEnhancedCode(text)],
    findReplyCode: ({ findReplyCode }) => [(text) => findReplyCode(text)],
  },
  'delivery-reports/bounce-recipients': {
    findRecipients: ({ findRecipients }) => inNotices(findRecipients),
    findReturnedRecipient: ({ findReturnedRecipient }) => inNotices(findReturnedRecipient),
  },
  'delivery-reports/described-message': {
    separateDescription: ({ separateDescription }) => [
      (text) => separateDescription(text.split('\n')),
      (text) => separateDescription([text]),
    ],
  },
  'delivery-reports/dsn': {
    parseDeliveryReport: ({ parseDeliveryReport }) => inMessages((raw) => parseDeliveryReport(bytes(raw))),
    findDeliveryReport: ({ findDeliveryReport }) => [
      (text) => findDeliveryReport([leaf('message/delivery-status', text)]),
    ],
    readReportBytes: ({ readReportBytes }) => [(text) => readReportBytes(stream(text))],
    parseStatusFields: ({ parseStatusFields }) => [
      (text) => parseStatusFields(text),
      (text) => parseStatusFields(`Final-Recipient: ${text}\nAction: failed\nDiagnostic-Code: ${text}`),
    ],
    classifyBounce: ({ classifyBounce }) => [(text) => classifyBounce(text, text)],
    resolveStatus: ({ resolveStatus }) => [(text) => resolveStatus(null, text)],
  },
  'delivery-reports/feedback-report': {
    parseFeedbackReport: ({ parseFeedbackReport }) => [
      ...inMessages((raw) => parseFeedbackReport(bytes(raw))),
      (text) =>
        parseFeedbackReport(
          bytes(`From: ${text}\nSubject: ${text}\nContent-Type: message/rfc822\n\nFrom: a\n\nb`),
        ),
    ],
    findFeedbackReport: ({ findFeedbackReport }) => [
      (text) => findFeedbackReport(fields(text, 'from', 'subject'), [leaf('message/rfc822', 'From: a\n\n')]),
      ...['message/feedback-report', 'text/plain', 'message/rfc822'].map(
        (type) => (text: string) => findFeedbackReport(new Map(), [leaf(type, text)]),
      ),
    ],
  },
  'delivery-reports/leaf-parts': {
    parseLeafParts: ({ parseLeafParts }) => inMessages((raw) => parseLeafParts(bytes(raw))),
    parseHeaderFields: ({ parseHeaderFields }) => inMessages((raw) => parseHeaderFields(bytes(raw))),
    parseFields: ({ parseFields }) => [(text) => parseFields(text)],
    decodeContent: ({ decodeContent }) => [
      (text) => decodeContent(leaf('text/plain', text)),
      (text) => decodeContent(leaf(`text/plain${text}`, text)),
    ],
  },
  'delivery-reports/read-report': {
    readMailReport: ({ readMailReport }) => inMessages((raw) => readMailReport(bytes(raw))),
    findRejectionByFilter: ({ findRejectionByFilter }) => [
      (text) => findRejectionByFilter(new Map(), [leaf('message/disposition-notification', text)], text),
      (text) =>
        findRejectionByFilter(
          fields(text, 'subject', 'auto-submitted'),
          [leaf('message/disposition-notification', `Disposition: a; deleted\nFinal-Recipient: ${text}`)],
          text,
        ),
    ],
  },
  'delivery-reports/report-outcomes': {
    readReportOutcomes: ({ readReportOutcomes }) => [
      (text) => readReportOutcomes(stream(text), { position: 0, relayedIsDelivered: true }),
    ],
  },
  'delivery-reports/report-token': {
    findReportTarget: ({ findReportTarget }) => [
      (text) =>
        findReportTarget(
          { reportedFields: fields(text, 'x-report-token', 'from', 'to'), originalMailFrom: text },
          { findIn: () => null },
        ),
    ],
  },
  'mime/mail-address': {
    domainOf: ({ domainOf }) => [(text) => domainOf(text), (text) => domainOf(`a@${text}`)],
    toAddressKey: ({ toAddressKey }) => [(text) => toAddressKey(text), (text) => toAddressKey(`a@${text}`)],
    toDomainKey: ({ toDomainKey }) => [(text) => toDomainKey(text)],
    toListEntryKey: ({ toListEntryKey }) => [(text) => toListEntryKey(text)],
    findAddressProblem: ({ findAddressProblem }) => [
      (text) => findAddressProblem(text),
      (text) => findAddressProblem(`a@${text}`),
    ],
    splitAddresses: ({ splitAddresses }) => [
      (text) => splitAddresses(text),
      (text) => splitAddresses(`"${text}`),
      (text) => splitAddresses(`<${text}`),
    ],
  },
  'mime/address-list': {
    readAddressList: ({ readAddressList }) => [
      (text) => readAddressList(text),
      (text) => readAddressList(`<${text}>`),
      (text) => readAddressList(`a <b@c.example>, "${text}`),
    ],
    replaceControls: ({ replaceControls }) => [(text) => replaceControls(text)],
  },
  'mime/author': {
    readAuthor: ({ readAuthor }) => [(text) => readAuthor([text]), (text) => readAuthor(text.split('\n'))],
  },
  'mime/build-mime': {
    buildReferencesField: ({ buildReferencesField }) => [
      (text) => buildReferencesField([text]),
      (text) => buildReferencesField(text.split(' ')),
    ],
  },
  'mime/charset': {
    decodeText: ({ decodeText }) => [
      (text) => decodeText(bytes(text), ''),
      (text) => decodeText(bytes(text), text),
      (text) => decodeText(bytes(`${text}\xff`), 'utf-7'),
      (text) => decodeText(Buffer.from(`${text}\xff`, 'latin1'), ''),
      (text) => decodeText(Buffer.from(`${text}\xff`, 'latin1'), 'shift_jis'),
      (text) => decodeText(bytes(text), 'utf-16'),
    ],
    isUtf8OrUnspecified: ({ isUtf8OrUnspecified }) => [(text) => isUtf8OrUnspecified(text)],
    createDecodingStream: ({ createDecodingStream }) => [
      (text) =>
        buffer(
          stream(text).pipe(
            createDecodingStream(
              (read: Buffer) => read.toString(),
              (size: number) => size,
            ),
          ),
        ),
    ],
  },
  'mime/converter/convert': {
    convert: ({ convert }) => [
      (text) => convert(text.slice(0, MAX_INLINE), { to: 'text' }),
      (text) =>
        convert(text.slice(0, MAX_INLINE), { to: 'html', maxBytes: 1_048_576, keepInlineImages: true }),
    ],
  },
  'mime/custom-header': {
    isProviderCommand: ({ isProviderCommand }) => [(text) => isProviderCommand(text)],
    findCustomHeaderProblem: ({ findCustomHeaderProblem }) => [
      (text) => findCustomHeaderProblem(text, 'a'),
      (text) => findCustomHeaderProblem('X-A', text),
    ],
  },
  'mime/domain-name': {
    parseDomainName: ({ parseDomainName }) => [(text) => parseDomainName(text)],
    isWithinDomain: ({ isWithinDomain }) => [(text) => isWithinDomain(text, 'a.example')],
  },
  'mime/encoded-words': {
    recodeEncodedWords: ({ recodeEncodedWords }) => [
      (text) => recodeEncodedWords(text),
      (text) => recodeEncodedWords(`=?utf-8?Q?\xe9${text.replaceAll('?', '')}?=`),
      ofLength((length) => recodeEncodedWords('=?koi8-r?Q?\xe9a?='.repeat(length / 16))),
      ofLength((length) => recodeEncodedWords('=?big5?B?pKQ=?= '.repeat(length / 17))),
    ],
    decodeEncodedWords: ({ decodeEncodedWords }) => [(text) => decodeEncodedWords(text)],
  },
  'mime/file-name': {
    sanitizeFileName: ({ sanitizeFileName }) => [(text) => sanitizeFileName(text)],
    getFileName: ({ getFileName }) => [
      (text) => getFileName(new Map([['content-disposition', { params: { filename: text } }]])),
      (text) => getFileName(new Map([['content-type', { params: { name: `${text}%C3` } }]])),
    ],
  },
  'mime/format-flowed': {
    joinFlowedLines: ({ joinFlowedLines }) => [
      (text) => joinFlowedLines(text, false),
      (text) => joinFlowedLines(text.replaceAll('\n', ' \n'), true),
    ],
  },
  'mime/header-limit': {
    limitHeader: ({ limitHeader }) => inMessages((raw) => buffer(stream(raw).pipe(limitHeader(() => {})))),
    limitHeaderBytes: ({ limitHeaderBytes }) => inMessages((raw) => limitHeaderBytes(bytes(raw))),
  },
  'mime/limit-nesting': {
    limitNesting: ({ limitNesting }) => [(text) => limitNesting(text)],
  },
  'mime/header-fields': {
    parseHeaderFields: ({ parseHeaderFields }) => [
      (text) => parseLeniently(parseHeaderFields, bytes(text)),
      (text) => parseLeniently(parseHeaderFields, bytes(`X-A: ${text.replace(/\r?\n/g, '\r\n ')}\r\n`)),
    ],
    formatHeaderFields: ({ formatHeaderFields }) => [
      (text) => formatHeaderFields([{ name: 'X-A', value: text }]),
    ],
    fieldsNamed: ({ fieldsNamed }) => [
      (text) =>
        fieldsNamed(
          text.split('\n').map((name) => ({ name, value: '' })),
          'X-A',
        ),
    ],
  },
  'mime/html-to-markdown': {
    htmlToMarkdown: ({ htmlToMarkdown }) => [
      (text) => htmlToMarkdown(text, UNLIMITED),
      (text) => htmlToMarkdown(`<a href=https://a.example>${text}`, UNLIMITED),
      (text) => htmlToMarkdown(`<table><tr><th>${text}`, UNLIMITED),
      ofLength((length) =>
        htmlToMarkdown(`<table>${'<tr><th>a<td>b'.repeat(length / 14)}</table>`, UNLIMITED),
      ),
    ],
  },
  'mime/new-text': {
    readNewText: ({ readNewText }) => [
      (text) => readNewText(text, { from: 'text', as: 'text' }, UNLIMITED),
      (text) => readNewText(text, { from: 'html', as: 'text' }, UNLIMITED),
      (text) => readNewText(text, { from: 'html', as: 'markdown' }, UNLIMITED),
    ],
  },
  'mime/html-to-text': {
    htmlToText: ({ htmlToText }) => [(text) => htmlToText(text, UNLIMITED)],
  },
  'mime/map-message': {
    mapMessage: ({ mapMessage }) => [
      (text) =>
        buffer(
          stream(text)
            .on('error', () => {})
            .pipe(mapMessage({ mapHeader: (read: Buffer) => read, mapBody: (read: Buffer) => read })),
        ).catch(() => null),
    ],
  },
  'mime/mime-reader': {
    decodeHeaderLine: ({ decodeHeaderLine }) => [(text) => decodeHeaderLine(text)],
    isUniqueField: ({ isUniqueField }) => [(text) => isUniqueField(text)],
  },
  'mime/multi-byte-charset': {
    isMultiByte: ({ isMultiByte }) => [(text) => isMultiByte(text)],
    decodeMultiByte: ({ decodeMultiByte }) => [
      (text) => decodeMultiByte(Buffer.from(`${text}\xff`, 'latin1'), 'big5'),
      ofLength((length) => decodeMultiByte(Buffer.from('\x82a\xff'.repeat(length / 3), 'latin1'), 'gb18030')),
    ],
    detectMultiByte: ({ detectMultiByte }) => [
      (text) => detectMultiByte(bytes(text)),
      ofLength((length) => detectMultiByte(Buffer.from('\xa4\xa4\xa6r'.repeat(length / 4), 'latin1'))),
    ],
  },
  'mime/parse-mail': {
    parseMail: ({ parseMail }) =>
      inMessages((raw) =>
        parseMail(stream(raw), {
          async consumeFile(_file: unknown, content: Readable) {
            await buffer(content).catch(() => null);
          },
        }),
      ),
  },
  'mime/part-limit': {
    limitParts: ({ limitParts }) => [
      (text) => buffer(stream(text).pipe(limitParts(900, () => {}))),
      (text) => buffer(stream(`boundary=a\n${text}`).pipe(limitParts(900, () => {}))),
    ],
  },
  'mime/part-header': {
    isFieldLine: ({ isFieldLine }) => [(text) => isFieldLine(text)],
    isKnownField: ({ isKnownField }) => [(text) => isKnownField(text)],
    hasContentField: ({ hasContentField }) => [(text) => hasContentField(text.split('\n'))],
    readPartHeader: ({ readPartHeader }) => [
      (text) => readPartHeader([`Content-Type: ${text}`]),
      (text) => readPartHeader(`Content-Type: multipart/mixed;\n ${text}`.split('\n')),
      (text) => readPartHeader([`Content-Type: text/plain ${text}`, 'Content-Disposition: inline']),
    ],
  },
  'mime/preview': {
    createPreview: ({ createPreview }) => [
      (text) => createPreview(text, null),
      (text) => createPreview(null, text),
    ],
  },
  'mime/quotes/attributions': {
    findAttribution: ({ findAttribution }) => [
      (text) => {
        const lines = toLines(text);
        for (const at of lines.keys()) findAttribution(lines, at);
      },
    ],
    isSentence: ({ isSentence }) => [
      (text) => {
        for (const line of toLines(text)) isSentence(line.text);
      },
    ],
  },
  'mime/quotes/date-and-name': {
    isDateAndName: ({ isDateAndName }) => [
      (text) => {
        for (const line of toLines(text)) isDateAndName(line.text);
      },
    ],
  },
  'mime/quotes/initials': {
    markInitialQuotes: ({ markInitialQuotes }) => [
      (text) => markInitialQuotes(toLines(text)),
      ofLength((length) => markInitialQuotes(toLines('BS> a\nTom> a\n'.repeat(length / 14)))),
    ],
  },
  'mime/quotes/shared-lines': {
    splitSharedLines: ({ splitSharedLines }) => [(text) => splitSharedLines(toLines(text))],
  },
  'mime/quotes/tracker-lines': {
    findTrackerLine: ({ findTrackerLine }) => [
      (text) => {
        const lines = toLines(text);
        for (const at of lines.keys()) findTrackerLine(lines, at);
      },
    ],
  },
  'mime/quotes/extract-reply': {
    extractReply: ({ extractReply }) => [
      (text) => extractReply({ text, html: null }, UNLIMITED),
      (text) => extractReply({ text: null, html: text }, UNLIMITED),
    ],
  },
  'mime/quotes/header-blocks': {
    isRule: ({ isRule }) => [(text) => isRule({ raw: text, text, kind: 'text' })],
    countHeaderBlockLines: ({ countHeaderBlockLines }) => [
      (text) => {
        const lines = toLines(text);
        for (const at of lines.keys()) countHeaderBlockLines(lines, at);
      },
    ],
    classifyDivider: ({ classifyDivider }) => [
      (text) => {
        const lines = toLines(text);
        for (const at of lines.keys()) classifyDivider(lines, at);
      },
    ],
    isReplyAboveMarker: ({ isReplyAboveMarker }) => [
      (text) => {
        for (const line of toLines(text)) isReplyAboveMarker(line);
      },
    ],
  },
  'mime/quotes/html-quotes': {
    markHtmlQuotes: ({ markHtmlQuotes }) => [(text) => markHtmlQuotes(text)],
    readMark: ({ readMark }) => [(text) => readMark(text)],
    toMarkedLines: ({ toMarkedLines }) => [
      (text) => toMarkedLines(text),
      (text) => toMarkedLines(text.replace(/[^\n]/g, '\ue001\n')),
      ofLength((length) => toMarkedLines(`${'\ue002\n'.repeat(length / 4)}${'\ue006\n'.repeat(length / 4)}`)),
    ],
  },
  'mime/quotes/lines': {
    normalizeText: ({ normalizeText }) => [(text) => normalizeText(text)],
    toLine: ({ toLine }) => [(text) => toLine(text)],
    toLines: ({ toLines: split }) => [(text) => split(text)],
  },
  'mime/quotes/mobile-signatures': {
    isMobileSignature: ({ isMobileSignature }) => [
      (text) => isMobileSignature(text),
      (text) => {
        for (let at = 0; at < text.length; at += 160) isMobileSignature(text.slice(at, at + 160));
      },
    ],
  },
  'mime/quotes/quote-headers': {
    isOriginalMarker: ({ isOriginalMarker }) => [(text) => isOriginalMarker(text)],
    isForwardedMarker: ({ isForwardedMarker }) => [(text) => isForwardedMarker(text)],
  },
  'mime/quotes/reply-text': {
    extractReplyLines: ({ extractReplyLines }) => [(text) => extractReplyLines(toLines(text))],
  },
  'mime/repair-structure': {
    repairStructure: ({ repairStructure }) => [
      ...inMessages((raw) => buffer(stream(raw).pipe(repairStructure(() => {})))),
      ofLength((length) => buffer(stream(nestMultiparts(length, 'b')).pipe(repairStructure(() => {})))),
      ofLength((length) => buffer(stream(nestMultiparts(length, 'c')).pipe(repairStructure(() => {})))),
      (text) => buffer(stream(`Content-Type: multipart/mixed\n\n${text}`).pipe(repairStructure(() => {}))),
      (text) =>
        buffer(stream(`${nestMultiparts(text.length / 2, 'b')}\n${text}`).pipe(repairStructure(() => {}))),
    ],
  },
  'mime/sanitize-html': {
    sanitizeHtml: ({ sanitizeHtml }) => [
      (text) => sanitizeHtml(text, { maxBytes: 1_048_576, keepInlineImages: true }, UNLIMITED),
      (text) => sanitizeHtml(text, { maxBytes: 30_000, keepInlineImages: false }, UNLIMITED),
    ],
    textToHtml: ({ textToHtml }) => [(text) => textToHtml(text, { maxBytes: 1_048_576 })],
    escapeHtml: ({ escapeHtml }) => [(text) => escapeHtml(text)],
    truncateToBytes: ({ truncateToBytes }) => [(text) => truncateToBytes(text, 50_000)],
  },
  'mime/message-text': {
    readMessageText: ({ readMessageText }) => [
      (text) => readMessageText({ text, html: null }, UNLIMITED),
      (text) => readMessageText({ text: 'View in your browser', html: text }, UNLIMITED),
    ],
  },
  'mime/message-findings': {
    readMessage: ({ readMessage }) => [
      (text) =>
        readMessage({ ...HEADER, subject: text, headers: { 'one-time-code': text } }, NO_BODY, UNLIMITED),
      (text) => readMessage(HEADER, { text, html: null }, UNLIMITED),
      (text) =>
        readMessage({ ...HEADER, subject: 'Verify your email' }, { text: null, html: text }, UNLIMITED),
    ],
  },
  'mime/codes/ascii-digits': {
    toAsciiDigits: ({ toAsciiDigits }) => [
      (text) => toAsciiDigits(text),
      ofLength((length) => toAsciiDigits('٣'.repeat(length))),
    ],
  },
  'mime/codes/code-candidates': {
    findCandidates: ({ findCandidates }) => inLines(findCandidates),
  },
  'mime/codes/code-keywords': {
    isAboutSignIn: ({ isAboutSignIn }) => [(text) => isAboutSignIn(text)],
    findKeywords: ({ findKeywords }) => inLines((line) => findKeywords(line, { allowVague: true })),
  },
  'mime/codes/find-codes': {
    findCodes: ({ findCodes }) => [
      (text) => findCodes({ subject: text, text: 'code', field: text }),
      (text) => findCodes({ subject: 'Your verification code', text }),
      ofLength((length) =>
        findCodes({ subject: '', text: 'Your verification code is 482913\n'.repeat(length / 32) }),
      ),
      ofLength((length) => findCodes({ subject: '', text: 'code 123456 '.repeat(length / 12) })),
    ],
  },
  'mime/codes/origin-bound-codes': {
    readCodeField: ({ readCodeField }) => [
      (text) => readCodeField(text),
      (text) => readCodeField(`code=${text}`),
    ],
    readLastLine: ({ readLastLine }) => [(text) => readLastLine(text), (text) => readLastLine(`@${text}`)],
  },
  'mime/file-text': {
    toVisibleText: ({ toVisibleText }) => [(text) => toVisibleText(text, UNLIMITED)],
    readMailFile: ({ readMailFile }) => inMessages((message) => readMailFile(bytes(message), UNLIMITED)),
  },
  'mime/injection/find-injection': {
    findInjection: ({ findInjection }) => [
      (text) => findInjection({ subject: text, text, hidden: text }),
      ofLength((length) =>
        findInjection({ subject: '', text: 'ignore all '.repeat(length / 11), hidden: null }),
      ),
    ],
    decodedTexts: ({ decodedTexts }) => [(text) => decodedTexts(text)],
  },
  'mime/injection/named-addresses': {
    findNamedAddresses: ({ findNamedAddresses }) => [
      (text) => findNamedAddresses([text]),
      (text) => findNamedAddresses([`${text}@people.example`]),
      ofLength((length) => findNamedAddresses(['a@b@'.repeat(length / 4)])),
    ],
  },
  'mime/injection/wording': {
    findWording: ({ findWording }) => [(text) => findWording(text)],
  },
  'mime/invites/find-invites': {
    isCalendar: ({ isCalendar }) => [(text) => isCalendar({ contentType: text, filename: text })],
    findInvites: ({ findInvites }) => [
      (text) => findInvites(text, UNLIMITED),
      (text) => findInvites(`BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n${text}`, UNLIMITED),
      (text) => findInvites(`BEGIN:VCALENDAR\r\nX-A;${text}`, UNLIMITED),
    ],
    readEvents: ({ readEvents }) => [
      (text) => readEvents(text),
      (text) => readEvents(`BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n${text}`),
      (text) => readEvents(`BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nRRULE:${text}`),
    ],
  },
  'mime/invites/local-time': {
    toUtc: ({ toUtc }) => [
      (text) => toUtc(text, 'Europe/Berlin'),
      (text) => toUtc('2026-11-24T15:00:00', text),
    ],
  },
  'mime/links/anchors': {
    readAnchors: ({ readAnchors }) => [
      (text) => readAnchors(text),
      ofLength((length) => readAnchors('<a href=https://a.example>b</a>'.repeat(length / 31))),
    ],
  },
  'mime/links/find-links': {
    describeUrl: ({ describeUrl }) => [
      (text) => describeUrl(text, 'ada@people.example'),
      (text) => describeUrl(`https://${text}`, text),
      (text) => describeUrl(`mailto:${text}`, text),
    ],
    findLinks: ({ findLinks }) => [
      (text) => findLinks({ subject: text, from: text, text, anchors: [] }),
      ofLength((length) =>
        findLinks({
          subject: '',
          from: undefined,
          text: 'https://a.example/ '.repeat(length / 19),
          anchors: [],
        }),
      ),
      (text) =>
        findLinks({
          subject: text,
          from: undefined,
          text: '',
          anchors: [{ ...ANCHOR, words: text, before: text }],
        }),
      (text) =>
        findLinks({
          subject: '',
          from: undefined,
          text: '',
          anchors: [{ ...ANCHOR, href: `https://a.example/${text}` }],
        }),
    ],
  },
  'mime/links/link-kinds': {
    deriveLinkKind: ({ deriveLinkKind }) => [
      (text) => deriveLinkKind({ words: text, before: text, url: text, subject: text }),
      (text) =>
        deriveLinkKind({ words: 'here', before: text, url: `https://a.example/${text}`, subject: text }),
    ],
  },
  'mime/write-out-html': {
    writeOutHtml: ({ writeOutHtml }) => [
      (text) => writeOutHtml(text),
      (text) => writeOutHtml(`<base href=https://a.example>${text}`),
      (text) => writeOutHtml(`<form action=https://a.example>${text}`),
      ofLength((length) => writeOutHtml('<a href=b><img alt=c></a>'.repeat(length / 25))),
    ],
    writeOutHtmlWithTimeout: ({ writeOutHtmlWithTimeout }) => [
      (text) => writeOutHtmlWithTimeout(text, UNLIMITED),
    ],
  },
  'mime/stub-text': {
    mayBeStub: ({ mayBeStub }) => [(text) => mayBeStub(text)],
    isStub: ({ isStub }) => [(text) => isStub(text, 'a b c'), (text) => isStub('a b c', text)],
  },
  'mime/transfer-encoding': {
    toTransferEncoding: ({ toTransferEncoding }) => [(text) => toTransferEncoding(text)],
    createTransferDecoder: ({ createTransferDecoder }) =>
      ['base64', 'quoted-printable'].map(
        (encoding) => (text: string) => buffer(stream(text).pipe(createTransferDecoder(encoding))),
      ),
  },
  'mime/visible/appearance': {
    deriveAppearance: ({ deriveAppearance, ROOT }) => [
      (text) => deriveAppearance(ROOT, { name: 'p', attributes: { style: text } }, NO_STYLES),
      (text) =>
        deriveAppearance(
          ROOT,
          { name: 'p', attributes: { style: `font:${text}`, bgcolor: text } },
          NO_STYLES,
        ),
      (text) =>
        deriveAppearance(
          ROOT,
          { name: 'p', attributes: { style: `transform:${text};clip:${text}` } },
          NO_STYLES,
        ),
    ],
  },
  'mime/visible/colors': {
    parseColor: ({ parseColor }) => [
      (text) => parseColor(text),
      (text) => parseColor(`#${text}`),
      (text) => parseColor(`rgb(${text}`),
    ],
  },
  'mime/visible/invisible-characters': {
    removeZeroWidth: ({ removeZeroWidth }) => [
      (text) => removeZeroWidth(text),
      ofLength((length) => removeZeroWidth('a\u200d'.repeat(length / 2))),
      ofLength((length) => removeZeroWidth('\u200d'.repeat(length))),
    ],
    stripInvisible: ({ stripInvisible }) => [
      (text) => stripInvisible(text),
      ofLength((length) => stripInvisible('\u200b'.repeat(length))),
      ofLength((length) => stripInvisible('\u200b '.repeat(length / 2))),
      ofLength((length) => stripInvisible(`\u200b${' '.repeat(length)}`)),
      ofLength((length) => stripInvisible('\u{1f3f4}\u{e0067}'.repeat(length / 4))),
      ofLength((length) => stripInvisible('\ufe0f'.repeat(length))),
    ],
  },
  'mime/visible/link-hosts': {
    hasMismatchedHost: ({ hasMismatchedHost }) => [
      (text) => hasMismatchedHost(text, 'https://a.example'),
      (text) => hasMismatchedHost('https://a.example', `https://${text}`),
    ],
  },
  'mime/visible/separate-hidden': {
    separateHidden: ({ separateHidden }) => [
      (text) => separateHidden(text),
      (text) => separateHidden(`<style>${text}</style><p class=a>a</p>`),
      ofLength((length) => separateHidden('<p class=a style="display:none">a</p>'.repeat(length / 37))),
      ofLength((length) => separateHidden('<a href=https://a.example>b.example</a>'.repeat(length / 39))),
      ofLength((length) =>
        separateHidden(
          `<style>${'.a{color:red}'.repeat(length / 26)}</style>${'<p class=a>a'.repeat(length / 24)}`,
        ),
      ),
    ],
    separateHiddenWithTimeout: ({ separateHiddenWithTimeout }) => [
      (text) => separateHiddenWithTimeout(text, UNLIMITED),
    ],
    removeHidden: ({ removeHidden }) => [(text) => removeHidden(text, UNLIMITED)],
  },
  'mime/visible/style-sheet': {
    parseDeclarations: ({ parseDeclarations }) => [(text) => parseDeclarations(text)],
    parseStyleSheet: ({ parseStyleSheet }) => [
      (text) => parseStyleSheet(text),
      ofLength((length) => parseStyleSheet('@media print{'.repeat(length / 13))),
      ofLength((length) => parseStyleSheet(`${'a '.repeat(length / 2)}{display:none}`)),
      ofLength((length) => parseStyleSheet('/*'.repeat(length / 2))),
    ],
  },
  'mime/subject': {
    getBaseSubject: ({ getBaseSubject }) => [(text) => getBaseSubject(text)],
    isReplySubject: ({ isReplySubject }) => [(text) => isReplySubject(text)],
    toReplySubject: ({ toReplySubject }) => [(text) => toReplySubject(text)],
    toForwardSubject: ({ toForwardSubject }) => [(text) => toForwardSubject(text)],
  },
  'inbound/derive-signals': {
    isAutoSubmitted: ({ isAutoSubmitted }) => [
      (text) => isAutoSubmitted({ 'auto-submitted': text, precedence: text }, text),
      (text) => isAutoSubmitted({ precedence: text }, text),
    ],
    deriveSignals: ({ deriveSignals }) => [
      (text) =>
        deriveSignals({
          from: { email: text },
          replyTo: text.split(' ').map((email) => ({ email })),
          automated: false,
          authentication: { spf: text, dkim: text, dmarc: text },
          isNewParticipant: false,
          mailFrom: text,
          inboxEmail: 'agent@a.example',
          hasHiddenText: false,
          hasMismatchedLink: false,
          hasNoAuthor: false,
        }),
    ],
  },
  'inbound/fingerprint': {
    computeFingerprint: ({ computeFingerprint }) => inMessages((raw) => computeFingerprint(stream(raw))),
  },
  'inbound/sender-authentication': {
    checkSender: ({ checkSender }) => [
      (text) =>
        checkSender(
          { spf: 'none', dkim: 'none', dmarc: 'pass', authorDomain: text, signers: [text] },
          'a.example',
        ),
    ],
  },
  'inbound/mail-authentication': {
    markUnclearAuthor: ({ markUnclearAuthor }) => [
      (text) =>
        markUnclearAuthor(
          { dmarc: 'pass', authorDomain: 'a.example' },
          { from: { email: `a@${text}` }, isAuthorAmbiguous: false },
        ),
    ],
    createAuthenticator: ({ createAuthenticator }) => {
      const authenticate = createAuthenticator({ resolve: async () => [], timeoutMs: UNLIMITED });
      const check = (raw: string) =>
        authenticate({
          raw: { sizeBytes: raw.length, open: async () => stream(raw) },
          isSigned: true,
          clientIp: '198.51.100.1',
          helo: 'a.example',
          mailFrom: 'a@b.example',
        });
      return [
        (text) => check(`From: ${text}\r\n\r\nbody`),
        (text) => check(`${SIGNATURE}From: a@b.example\r\nX-A: ${text}\r\n\r\nbody`),
        (text) => check(`${SIGNATURE}From: a@b.example\r\n\r\n${text}`),
        (text) =>
          check(`DKIM-Signature: v=1; a=rsa-sha256; d=a.example; s=s; bh=YQ==; b=YQ==; h=${text}\r\n\r\n`),
      ];
    },
    isPublicAddress: ({ isPublicAddress }) => [(text) => isPublicAddress(text)],
  },
  'inbound/raw-mail': {
    openRawMail: ({ openRawMail }) => [
      (text) => openRawMail({ getStream: async () => stream(text) }, { rawKey: 'a', sizeBytes: text.length }),
    ],
  },
};

/** Multiparts within each other, with the declared boundaries (`b`) or others. */
function nestMultiparts(characters: number, used: string): string {
  const lines = Array.from({ length: Math.ceil(characters / 60) }, (_, n) => [
    `Content-Type: multipart/mixed; boundary=b${n}`,
    '',
    `--${used}${n}`,
  ]);
  return lines.flat().join('\n');
}

/** A time limit that never ends the work: what it would hide is measured. */
const NO_STYLES = { match: () => [] };
const UNLIMITED = 600_000;
/** Longer HTML is converted in a child process; its conversions are measured without a limit. */
const MAX_INLINE = 8 * 1024;
const SIGNATURE =
  'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=b.example; s=s; h=from:to:subject:x-a; bh=YQ==; b=YQ==\r\n';

function parseLeniently(parse: (read: Buffer) => unknown, read: Buffer): unknown {
  try {
    return parse(read);
  } catch {
    return null;
  }
}

const OUR_TEXT = 'Writes a message of ours: its input is limited by the API and was checked there.';
const DATABASE = 'Reads and writes rows. The text is read by other functions.';
const CHILD = 'Runs or talks to a child process, which is killed if it takes too long.';

/** Exported functions that take no text of strangers, or only pass it on. */
export const EXEMPT: Record<string, string> = {
  'delivery-reports/report-token withRecipientToken': 'Prepends a field of ours to a stream.',
  'mime/build-mime buildMime': OUR_TEXT,
  'mime/dkim-signature createDkimSignature': OUR_TEXT,
  'mime/sign-mime signBytes': OUR_TEXT,
  'mime/sign-mime signStream': OUR_TEXT,
  'mime/header-fields MalformedHeaderError': 'An error without behavior.',
  'mime/build-mime UnsendableMessageError': 'An error without behavior.',
  'delivery-reports/bounce-phrases containsReason': 'Asks the three other functions of its module.',
  'mime/message-findings findNamedAddresses': 'Measured where it is defined.',
  'mime/message-findings findWording': 'Measured where it is defined.',
  'mime/mime-reader MimeReader': 'parseMail is its only user, and is measured.',
  'mime/mime-reader createMimeReader': 'parseMail is its only user, and is measured.',
  'mime/parse-mail emptyParsedMail': 'Takes no text of strangers.',
  'mime/parser/pool emptyInboundMail': 'Takes no text of strangers.',
  'mime/visible/appearance isConcealed': 'Compares numbers.',
  'mime/visible/colors isSameColor': 'Compares numbers.',
  'mime/converter/convert runConverterChild': CHILD,
  'mime/converter/pool createHtmlConverter': CHILD,
  'mime/converter/pool ConversionStoppedError': 'An error without behavior.',
  'mime/parser/child runParserChild': CHILD,
  'mime/parser/pool createParserPool': CHILD,
  'inbound/mail-authentication markUnreadAuthor': 'Copies two results.',
  'inbound/finding-columns findingColumns': 'Names columns.',
  'inbound/create-received-message createReceivedMessage': DATABASE,
  'inbound/create-received-message insertAttachments': DATABASE,
  'inbound/create-received-message findOtherRecipients':
    'Compares each of the bounded number of addresses once.',
  'inbound/create-received-message isKnownParticipant': DATABASE,
  'inbound/raise-alarm raiseAlarmOfMail': DATABASE,
  'inbound/follow-thread followThread': DATABASE,
  'inbound/follow-thread lockFollowing': DATABASE,
  'inbound/discard-receipt discardReceipt': DATABASE,
  'inbound/discard-receipt refundReceived': DATABASE,
  'inbound/parse-again.service createParseAgainService': DATABASE,
  'inbound/parse-again.service startParsingAgain': DATABASE,
  'inbound/delete-receipts deleteInboxReceipts': DATABASE,
  'inbound/delete-receipts deleteOrganizationReceipts': DATABASE,
  'inbound/delete-receipts deleteExpiredReceipts': DATABASE,
  'inbound/receipt.entity toMessageId': 'Takes an id of ours.',
  'inbound/inbound-routes countOtherInboxes': 'Compares ids of ours.',
  'inbound/inbound-routes findCatchAllInbox': DATABASE,
  'inbound/inbound-routes findReceivingInbox': DATABASE,
  'inbound/inbound-routes findReportRoute': DATABASE,
  'inbound/ingest.service createIngestService': DATABASE,
  'inbound/loop-guard pauseIfLooping': DATABASE,
  'inbound/mail-authentication skipAuthentication': 'Does nothing.',
  'inbound/overdue-receipts overdueReceipts': DATABASE,
  'inbound/receipt.service createReceiptService': DATABASE,
  'inbound/receipt.service buildReceiveStart': DATABASE,
  'inbound/spam-verdict skipSpamScan': 'Does nothing.',
  'inbound/spam-verdict createScanForSpam': 'Streams the message to rspamd.',
  'inbound/spam-verdict deriveSpamVerdict': 'Compares two results.',
  'inbound/unattributed-reports storeUnattributedReport': DATABASE,
  'inbound/unattributed-reports deleteExpiredReports': DATABASE,
};
