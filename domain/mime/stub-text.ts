/** Longer texts are never stubs, regardless of the length of the HTML. */
const MAX_STUB_WORDS = 150;
const MAX_STUB_CHARACTERS = 4_000;
const MAX_COUNTED_CHARACTERS = 100_000;
/** A longer text that mentions a browser may be about browsers. */
const MAX_POINTER_WORDS = 40;
/** A text that mentions a browser or HTML is a pointer if the HTML has at least 50% more words. */
const MIN_RATIO_OF_POINTER = 1.5;
/** Any other text is only a fragment if it has less than a quarter of the words. */
const MIN_RATIO_OF_FRAGMENT = 4;
const MIN_WORDS_OF_HTML = 20;

/** Words for a browser, a mail program that displays HTML, or the web version of a message, in the languages of the quotes. */
const POINTER = new RegExp(
  [
    String.raw`\bhtml\b|\bbrowser|\bonline\b|web ?version|web ?page|email client|mail client|rich text`,
    'e-mail-programm|mailprogramm|webansicht|navigateur|en ligne|messagerie|navegador|en línea|versión web|versão web',
    'webbrowser|online bekijken|visualizza|client di posta|przeglądar|webbläsare|nettleser|selain|prohlížeč',
    'böngésző|tarayıcı|πρόγραμμα περιήγησης|браузер|почтов|оглядач|ブラウザ|メールソフト|浏览器|瀏覽器|网页版|브라우저|웹',
    'المتصفح|متصفح|דפדפן|navigator|versiunea web',
  ].join('|'),
  'iu',
);
const URLS = /https?:\/\/[^\s<>"]{1,2000}/gi;
/** In scripts without spaces, two characters count as a word. */
const WORDS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{1,2}|[\p{L}\p{N}]+/gu;

/** Whether the text is short enough for {@link isStub}. */
export function mayBeStub(text: string): boolean {
  return text.length <= MAX_STUB_CHARACTERS && countWords(text) <= MAX_STUB_WORDS;
}

/**
 * Whether the text body is only a placeholder for the HTML: it tells the reader to view the message in a browser and is
 * not part of the HTML, or it has only a fraction of the HTML's words. A text with which the HTML starts is not a
 * placeholder, because the rest of the HTML may be a quote.
 */
export function isStub(text: string, htmlText: string): boolean {
  if (!mayBeStub(text)) return false;
  const words = countWords(text);
  const wordsOfHtml = countWords(htmlText);
  if (wordsOfHtml === 0 || startsWithWords(htmlText, text)) return false;
  if (words === 0) return true;
  const mayPoint = POINTER.test(text);
  if (mayPoint && words <= MAX_POINTER_WORDS && !containsWords(htmlText, text)) return true;
  if (mayPoint && wordsOfHtml >= words * MIN_RATIO_OF_POINTER) return true;
  return wordsOfHtml >= Math.max(MIN_WORDS_OF_HTML, words * MIN_RATIO_OF_FRAGMENT);
}

function countWords(text: string): number {
  return (text.slice(0, MAX_COUNTED_CHARACTERS).replace(URLS, ' ').match(WORDS) ?? []).length;
}

function startsWithWords(text: string, start: string): boolean {
  const expected = toLetters(start);
  return expected !== '' && toLetters(text).startsWith(expected);
}

/** Whether the text is also in the HTML, which means that the author wrote it. */
function containsWords(text: string, part: string): boolean {
  return toLetters(text).includes(toLetters(part));
}

function toLetters(whole: string): string {
  return whole
    .slice(0, 2 * MAX_STUB_CHARACTERS)
    .replace(URLS, '')
    .replace(/[^\p{L}\p{N}]+/gu, '')
    .toLowerCase();
}
