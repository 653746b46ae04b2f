/**
 * How mail programs introduce quotes, by language. In lower case, like the text they are compared with. People use the
 * same words in sentences, so a match alone is not enough: `attributions.ts` and `header-blocks.ts` check the context.
 */
interface QuoteLanguage {
  /** The verb of `On … wrote:`. */
  wrote: string[];
  /** Field names of the block that Outlook and others put above the quoted message. */
  from: string[];
  date: string[];
  to: string[];
  subject: string[];
  /** Between dashes, above the quoted message. */
  original: string[];
  /** Between dashes, or alone with a colon, above a forwarded message. */
  forwarded: string[];
}

export const QUOTE_LANGUAGES: Record<string, QuoteLanguage> = {
  English: {
    wrote: ['wrote', 'writes'],
    from: ['from'],
    date: ['sent', 'date', 'received', 'sent on'],
    to: ['to', 'cc', 'bcc', 'reply-to'],
    subject: ['subject', 're'],
    original: ['original message', 'original', 'original appointment', 'replied message', 'reply message'],
    forwarded: [
      'forwarded message',
      'begin forwarded message',
      'forwarded by',
      'forwarded mail',
      'forward message',
    ],
  },
  German: {
    wrote: ['schrieb', 'schrieben', 'schreibt', 'hat geschrieben', 'geschrieben'],
    from: ['von', 'absender'],
    date: ['gesendet', 'datum', 'gesendet am'],
    to: ['an', 'kopie', 'empfänger', 'antwort an'],
    subject: ['betreff'],
    original: [
      'ursprüngliche nachricht',
      'originalnachricht',
      'original-nachricht',
      'original nachricht',
      'originalmail',
      'ursprünglicher termin',
      'antwort nachricht',
      'antwortnachricht',
      'antwort-nachricht',
    ],
    forwarded: [
      'weitergeleitete nachricht',
      'anfang der weitergeleiteten nachricht',
      'weitergeleitete e-mail',
      'weitergeleitet von',
    ],
  },
  French: {
    wrote: ['a écrit', 'écrit', 'a ecrit', 'écrivait'],
    from: ['de', 'expéditeur'],
    date: ['envoyé', 'date', 'envoyé le', 'envoyée', 'envoye', 'message du'],
    to: ['à', 'pour', 'destinataire', 'destinataires', 'copie à', 'a'],
    subject: ['objet', 'sujet'],
    original: [
      "message d'origine",
      'message d’origine',
      'message original',
      'courriel original',
      'message initial',
    ],
    forwarded: [
      'message transféré',
      'début du message transféré',
      'début du message réexpédié',
      'courriel transféré',
      'message transmis',
      'forwarded message',
    ],
  },
  Spanish: {
    wrote: ['escribió', 'escribio', 'ha escrito'],
    from: ['de', 'remitente'],
    date: ['enviado', 'enviado el', 'fecha', 'enviada'],
    to: ['para', 'destinatario', 'a'],
    subject: ['asunto'],
    original: ['mensaje original', 'correo original'],
    forwarded: [
      'mensaje reenviado',
      'inicio del mensaje reenviado',
      'inicio de mensaje reenviado',
      'correo reenviado',
    ],
  },
  Portuguese: {
    wrote: ['escreveu', 'ha escreveu'],
    from: ['de', 'remetente'],
    date: ['enviado', 'enviada em', 'enviado em', 'enviada', 'data', 'data de envio'],
    to: ['para', 'destinatário', 'com cópia'],
    subject: ['assunto'],
    original: ['mensagem original', 'mensagem de origem', 'e-mail original'],
    forwarded: [
      'mensagem encaminhada',
      'mensagem reencaminhada',
      'início da mensagem encaminhada',
      'início da mensagem reencaminhada',
    ],
  },
  Dutch: {
    wrote: ['schreef', 'heeft geschreven', 'heeft het volgende geschreven', 'geschreven'],
    from: ['van', 'afzender'],
    date: ['verzonden', 'datum', 'verstuurd'],
    to: ['aan', 'ontvanger'],
    subject: ['onderwerp'],
    original: ['oorspronkelijk bericht', 'origineel bericht', 'oorspronkelijke bericht'],
    forwarded: [
      'doorgestuurd bericht',
      'begin doorgestuurd bericht',
      'begin van doorgestuurd bericht',
      'doorgestuurde bericht',
    ],
  },
  Italian: {
    wrote: ['ha scritto', 'scritto', 'scrive', 'scrisse'],
    from: ['da', 'mittente'],
    date: ['inviato', 'data', 'inviata'],
    to: ['a', 'per', 'destinatario'],
    subject: ['oggetto'],
    original: ['messaggio originale', 'messaggio di origine'],
    forwarded: ['messaggio inoltrato', 'inizio messaggio inoltrato', 'inizio del messaggio inoltrato'],
  },
  Japanese: {
    wrote: ['のメッセージ', 'のメール', '書きました', '書いた', 'は書きました', 'wrote'],
    from: ['差出人', '送信者', '送信元', 'from'],
    date: ['送信日時', '送信日', '日付', '日時', '送信済み'],
    to: ['宛先', '受信者'],
    subject: ['件名', '題名'],
    original: ['元のメッセージ', 'オリジナルメッセージ', '元のメール', '返信元のメッセージ'],
    forwarded: [
      '転送されたメッセージ',
      '転送メッセージ',
      '転送されたメール',
      '以下は転送されたメッセージです',
    ],
  },
  Chinese: {
    wrote: ['写道', '寫道', '写', '寫', '编写', '撰寫'],
    from: ['发件人', '寄件者', '寄件人', '发信人', '發件人', '发自'],
    date: [
      '发送时间',
      '发送日期',
      '日期',
      '时间',
      '時間',
      '傳送時間',
      '寄件日期',
      '傳送日期',
      '已发送',
      '已傳送',
      '發送時間',
      '發件日期',
    ],
    to: ['收件人', '收件者', '抄送', '副本'],
    subject: ['主题', '主題', '主旨', '标题'],
    original: [
      '原始邮件',
      '原始郵件',
      '邮件原件',
      '原邮件',
      '原始信件',
      '回复的原邮件',
      '原始訊息',
      '原郵件',
    ],
    forwarded: [
      '转发的邮件',
      '轉寄的郵件',
      '转发邮件信息',
      '轉寄郵件',
      '下面是被转发的邮件',
      '以下是轉寄的郵件',
      '开始转发的邮件',
      '开始转发邮件',
      '已转发邮件',
      '轉寄的訊息',
      '以下為轉寄信件',
      '转发邮件',
    ],
  },
  Polish: {
    wrote: ['napisał', 'napisała', 'napisał(a)', 'pisze', 'napisano', 'napisał/a', 'napisali'],
    from: ['od', 'nadawca'],
    date: ['wysłano', 'data', 'wysłane', 'data wysłania'],
    to: ['do', 'dw', 'adresat'],
    subject: ['temat'],
    original: ['wiadomość oryginalna', 'oryginalna wiadomość', 'wiadomość źródłowa'],
    forwarded: [
      'wiadomość przekazana dalej',
      'przekazana wiadomość',
      'treść przekazanej wiadomości',
      'początek przekazywanej wiadomości',
      'początek wiadomości przekazanej dalej',
      'wiadomość przekazana',
    ],
  },
  Swedish: {
    wrote: ['skrev', 'skriver'],
    from: ['från', 'avsändare'],
    date: ['skickat', 'datum', 'skickades'],
    to: ['till', 'kopia'],
    subject: ['ämne'],
    original: ['ursprungligt meddelande', 'originalmeddelande', 'ursprungliga meddelandet'],
    forwarded: [
      'vidarebefordrat meddelande',
      'vidarebefordrat brev',
      'vidarebefordrat mejl',
      'börja vidarebefordrat meddelande',
    ],
  },
  Norwegian: {
    wrote: ['skrev', 'skriver'],
    from: ['fra', 'avsender'],
    date: ['sendt', 'dato'],
    to: ['til', 'kopi'],
    subject: ['emne'],
    original: ['opprinnelig melding', 'original melding', 'opprinnelig e-post'],
    forwarded: ['videresendt melding', 'videresendt e-post', 'start på videresendt melding'],
  },
  Danish: {
    wrote: ['skrev', 'skriver', 'har skrevet'],
    from: ['fra', 'afsender'],
    date: ['sendt', 'dato'],
    to: ['til', 'kopi'],
    subject: ['emne'],
    original: [
      'oprindelig meddelelse',
      'original meddelelse',
      'original besked',
      'oprindelig besked',
      'oprindelig mail',
    ],
    forwarded: [
      'videresendt besked',
      'videresendt meddelelse',
      'start på videresendt besked',
      'videresendt mail',
    ],
  },
  Finnish: {
    wrote: ['kirjoitti', 'kirjoittaa'],
    from: ['lähettäjä'],
    date: ['lähetetty', 'päivämäärä', 'pvm', 'päiväys'],
    to: ['vastaanottaja', 'kopio'],
    subject: ['aihe'],
    original: ['alkuperäinen viesti', 'alkup. viesti'],
    forwarded: ['edelleenlähetetty viesti', 'välitetty viesti', 'välitetty viesti alkaa'],
  },
  Russian: {
    wrote: ['написал', 'написала', 'пишет', 'написал(а)', 'писал', 'писал(а)', 'писали', 'написали'],
    from: ['от', 'от кого', 'отправитель'],
    date: ['отправлено', 'дата', 'отправлен'],
    to: ['кому', 'копия', 'получатель'],
    subject: ['тема'],
    original: ['исходное сообщение', 'оригинальное сообщение', 'исходное письмо', 'первоначальное сообщение'],
    forwarded: [
      'пересылаемое сообщение',
      'пересланное сообщение',
      'начало переадресованного сообщения',
      'начало пересылаемого сообщения',
      'перенаправленное сообщение',
      'пересылаемое письмо',
    ],
  },
  Ukrainian: {
    wrote: ['пише', 'написав', 'написала', 'написав(-ла)', 'писав', 'писали'],
    from: ['від', 'від кого', 'відправник'],
    date: ['надіслано', 'дата', 'відправлено'],
    to: ['кому', 'копія', 'одержувач'],
    subject: ['тема'],
    original: ['вихідне повідомлення', 'оригінальне повідомлення', 'початкове повідомлення'],
    forwarded: [
      'переслане повідомлення',
      'пересланий лист',
      'перенаправлене повідомлення',
      'початок листа, який пересилається',
    ],
  },
  Czech: {
    wrote: ['napsal', 'napsala', 'napsal(a)', 'napsal/a', 'píše'],
    from: ['od', 'odesílatel'],
    date: ['odesláno', 'datum', 'posláno'],
    to: ['komu', 'kopie', 'pro'],
    subject: ['předmět'],
    original: ['původní zpráva', 'původní e-mail', 'originální zpráva'],
    forwarded: ['přeposlaná zpráva', 'začátek přeposílané zprávy', 'přeposlaný e-mail', 'předaná zpráva'],
  },
  Hungarian: {
    wrote: ['írta', 'ezt írta', 'ezt írta (időpont', 'a következőt írta', 'írt'],
    from: ['feladó'],
    date: ['elküldve', 'küldve', 'dátum', 'küldés ideje', 'küldés dátuma'],
    to: ['címzett', 'másolat', 'másolatot kap'],
    subject: ['tárgy'],
    original: ['eredeti üzenet', 'eredeti levél'],
    forwarded: [
      'továbbított üzenet',
      'továbbított levél',
      'továbbított üzenet kezdete',
      'a továbbított üzenet kezdete',
    ],
  },
  Turkish: {
    wrote: ['yazdı', 'şunu yazdı', 'şunları yazdı', 'yazmış'],
    from: ['kimden', 'gönderen', 'gonderen'],
    date: ['gönderildi', 'tarih', 'gönderilme', 'gönderme tarihi', 'gönderilen', 'gönderim zamanı'],
    to: ['kime', 'alıcı', 'bilgi'],
    subject: ['konu'],
    original: [
      'orijinal ileti',
      'orijinal mesaj',
      'özgün ileti',
      'asıl ileti',
      'orjinal mesaj',
      'özgün mesaj',
    ],
    forwarded: [
      'iletilmiş mesaj',
      'iletilen mesaj',
      'yönlendirilmiş ileti',
      'iletilen ileti',
      'iletilmiş ileti başlangıcı',
      'yönlendirilen ileti',
    ],
  },
  Greek: {
    wrote: ['έγραψε', 'έγραψε τα εξής', 'γράφει', 'έγραψαν'],
    from: ['από', 'αποστολέας'],
    date: ['στάλθηκε', 'ημερομηνία', 'εστάλη', 'αποστολή', 'ημ/νία'],
    to: ['προς', 'κοιν', 'κοιν.', 'κοινοποίηση', 'παραλήπτης'],
    subject: ['θέμα'],
    original: ['αρχικό μήνυμα', 'πρωτότυπο μήνυμα', 'αρχικο μηνυμα'],
    forwarded: ['προωθημένο μήνυμα', 'έναρξη προωθημένου μηνύματος', 'προωθούμενο μήνυμα'],
  },
  Korean: {
    wrote: [
      '님이 작성',
      '작성',
      '님이 씀',
      '쓴 글',
      '작성함',
      '님이 다음을 작성',
      '님이 다음과 같이 썼습니다',
      '썼습니다',
      '보낸 메시지',
    ],
    from: ['보낸 사람', '보낸사람', '발신자', '발신', '보내는 사람'],
    date: ['보낸 날짜', '날짜', '보낸날짜', '보낸 시간', '전송 날짜', '전송', '일시', '보냄', '보낸 일시'],
    to: ['받는 사람', '받는사람', '수신자', '수신', '참조'],
    subject: ['제목'],
    original: ['원본 메시지', '원본 메일', '원본메시지', '원래 메시지', '원본메일', '원문'],
    forwarded: ['전달된 메시지', '전달된 메일', '전달 메시지', '전달한 메시지'],
  },
  Romanian: {
    wrote: ['a scris', 'scris', 'scrie'],
    from: ['de la', 'expeditor'],
    date: ['trimis', 'data', 'dată', 'expediat', 'trimis la', 'data'],
    to: ['către', 'catre', 'la', 'pentru'],
    subject: ['subiect', 'subiectul'],
    original: ['mesaj original', 'mesajul original', 'mesaj inițial'],
    forwarded: [
      'mesaj redirecționat',
      'mesaj redirectionat',
      'mesaj transmis',
      'începutul mesajului redirecționat',
      'început mesaj redirecționat',
      'mesaj retrimis',
    ],
  },
  Arabic: {
    wrote: ['كتب', 'كتبت', 'تمت كتابة ما يلي بواسطة', 'كتب/كتبت', 'كتب ما يلي'],
    from: ['من', 'المرسل'],
    date: ['تم الإرسال', 'التاريخ', 'تاريخ الإرسال', 'أرسلت', 'أُرسلت', 'أرسل', 'مرسل', 'الإرسال', 'تاريخ'],
    to: ['إلى', 'الى', 'نسخة', 'المستلم'],
    subject: ['الموضوع', 'موضوع'],
    original: ['الرسالة الأصلية', 'رسالة أصلية', 'الرسالة الاصلية'],
    forwarded: [
      'رسالة معاد توجيهها',
      'رسالة محولة',
      'الرسالة المعاد توجيهها',
      'بدء الرسالة المعاد توجيهها',
      'بداية الرسالة المحولة',
    ],
  },
  Hebrew: {
    wrote: ['כתב', 'כתבה', 'מאת', 'כתב/ה', '‏כתב'],
    from: ['מאת', 'שולח'],
    date: ['נשלח', 'תאריך', 'נשלח ב', 'נשלח בתאריך'],
    to: ['אל', 'עותק', 'נמען'],
    subject: ['נושא', 'הנושא'],
    original: ['הודעה מקורית', 'ההודעה המקורית', 'מקור ההודעה'],
    forwarded: ['הודעה שהועברה', 'הודעה מועברת', 'תחילת ההודעה שהועברה'],
  },
};

export type HeaderField = 'from' | 'date' | 'to' | 'subject';

const collectWords = (key: keyof QuoteLanguage): string[] => [
  ...new Set(Object.values(QUOTE_LANGUAGES).flatMap((language) => language[key])),
];

/** Meanings of a field name across all languages. A word may have different meanings in different languages. */
export const HEADER_FIELDS: ReadonlyMap<string, ReadonlySet<HeaderField>> = groupFieldsByName();

function groupFieldsByName(): Map<string, Set<HeaderField>> {
  const fields = new Map<string, Set<HeaderField>>();
  for (const field of ['from', 'date', 'to', 'subject'] as const) {
    for (const name of collectWords(field)) {
      const meanings = fields.get(name) ?? new Set();
      fields.set(name, meanings.add(field));
    }
  }
  return fields;
}

const ORIGINAL = new Set(collectWords('original'));
const FORWARDED = new Set(collectWords('forwarded'));

/** @param words of the line, without dashes and colon, in lower case. */
export function isOriginalMarker(words: string): boolean {
  return ORIGINAL.has(words);
}

export function isForwardedMarker(words: string): boolean {
  return FORWARDED.has(words) || words.startsWith('forwarded by ');
}

/** Longest first, so that the longest alternative matches. */
function toAlternatives(words: string[]): string {
  const sorted = words.sort((a, b) => b.length - a.length);
  return sorted.map((word) => word.replace(/[().]/g, '\\$&')).join('|');
}

/** Chinese, Japanese and Korean append the verb to the name; in other languages it is a separate word. */
const CJK_WORD = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const cjkVerbs = toAlternatives(collectWords('wrote').filter((word) => CJK_WORD.test(word)));
const spacedVerbs = toAlternatives(collectWords('wrote').filter((word) => !CJK_WORD.test(word)));

export const WROTE = new RegExp(
  `(?:${cjkVerbs}|(?<![\\p{L}\\p{M}])(?:${spacedVerbs})(?:\\([^\\s()]{1,4}\\))?)(?![\\p{L}\\p{M}])`,
  'iu',
);
