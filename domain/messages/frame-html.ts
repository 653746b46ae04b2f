import { escapeHtml } from '../mime/sanitize-html.ts';

export interface FrameOptions {
  /** The page that a link opens, by its number in the HTML, from 0. Null makes links plain text. */
  linkTo: ((index: number) => string) | null;
  /** Images of other servers, which then see the address of the reader. Otherwise their `alt` text stands in their place. */
  allowsRemoteImages: boolean;
  /** `data:` URLs of the images that the message contains, by Content-ID. */
  inlineImages?: ReadonlyMap<string, string>;
}

/** In the output of `sanitizeHtml`, neither text nor an attribute has a bare `<` or `>`, and values stand in double quotes. */
const LINK_OR_IMAGE = /<(a|img)((?: [^<>]*)?)>/g;
const ATTRIBUTE = /([a-z-]+)="([^"]*)"/g;

/**
 * Prepares the output of `sanitizeHtml` for a frame: links open a page of the service in a new tab, and images that must not
 * be loaded become text.
 */
export function prepareFrameHtml(sanitized: string, options: FrameOptions): string {
  let links = 0;
  return sanitized.replace(LINK_OR_IMAGE, (_tag, name: string, list: string) => {
    const attributes = readAttributes(list);
    if (name === 'img') return writeImage(attributes, options);
    const { href, ...others } = attributes;
    const target = href === undefined || options.linkTo === null ? null : options.linkTo(links);
    if (href !== undefined) links += 1;
    if (target === null) return write('a', others);
    return write('a', {
      ...others,
      href: escapeHtml(target),
      target: '_blank',
      rel: 'noopener noreferrer nofollow',
    });
  });
}

/** The targets of the links of sanitized HTML, in the order of their numbers. */
export function listFrameLinks(sanitized: string): string[] {
  return [...sanitized.matchAll(LINK_OR_IMAGE)].flatMap(([, name, list = '']) => {
    const { href } = name === 'a' ? readAttributes(list) : {};
    return href === undefined ? [] : [unescapeHtml(href)];
  });
}

/** Whether sanitized HTML has images that only {@link FrameOptions.allowsRemoteImages} shows. */
export const hasRemoteImages = (sanitized: string): boolean => /<img [^<>]*src="https:/i.test(sanitized);

/** The Content-IDs of the images that sanitized HTML shows. */
export function listInlineImages(sanitized: string): Set<string> {
  return new Set(
    [...sanitized.matchAll(LINK_OR_IMAGE)].flatMap(([, name, list = '']) => {
      const { src } = name === 'img' ? readAttributes(list) : {};
      return src !== undefined && isInline(src) ? [toContentId(src)] : [];
    }),
  );
}

type Attributes = Record<string, string>;

const readAttributes = (list: string): Attributes =>
  Object.fromEntries([...list.matchAll(ATTRIBUTE)].map(([, name = '', value = '']) => [name, value]));

const write = (tag: string, attributes: Attributes): string =>
  `<${[tag, ...Object.entries(attributes).map(([name, value]) => `${name}="${value}"`)].join(' ')}>`;

function writeImage(attributes: Attributes, { allowsRemoteImages, inlineImages }: FrameOptions): string {
  const { src = '', alt = '' } = attributes;
  if (isInline(src)) {
    const data = inlineImages?.get(toContentId(src));
    return data === undefined ? alt : write('img', { ...attributes, src: data });
  }
  if (!allowsRemoteImages || !/^https:/i.test(src)) return alt;
  return write('img', { ...attributes, referrerpolicy: 'no-referrer' });
}

const isInline = (src: string) => /^cid:/i.test(src);

/** Content-IDs are percent-encoded in URLs (RFC 2392). */
function toContentId(src: string): string {
  const id = unescapeHtml(src.slice('cid:'.length));
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

const CHARACTERS: Record<string, string> = { lt: '<', gt: '>', quot: '"', amp: '&' };

const unescapeHtml = (text: string): string =>
  text.replace(/&(lt|gt|quot|amp);/g, (_reference, name: string) => CHARACTERS[name] ?? '');
