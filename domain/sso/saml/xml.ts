import { DOMParser } from '@xmldom/xmldom';
import { SaxesParser } from 'saxes';

/** XML that is malformed or uses more than a SAML message needs. The message says why, without the content. */
export class XmlRefusal extends Error {}

/** The part of a DOM node that this module uses. */
export interface XmlElement {
  localName: string | null;
  namespaceURI: string | null;
  parentNode: unknown;
  childNodes: ArrayLike<XmlNode>;
  attributes: ArrayLike<{ localName: string | null; name: string; value: string }>;
  getAttribute(name: string): string | null;
  hasAttribute(name: string): boolean;
}
type XmlNode = { nodeType: number; nodeValue: string | null };

const ELEMENT_NODE = 1;
const TEXT_NODE = 3;
const MAX_DEPTH = 60;
const MAX_ELEMENTS = 5_000;
const MAX_ATTRIBUTES = 50;

/**
 * Parses a well-formed document. Refuses DTDs, custom entities, comments, processing instructions and CDATA sections: no
 * identity provider needs them, and parsers disagree about them.
 *
 * @throws XmlRefusal
 */
export function parseXml(xml: string): XmlElement {
  const body = xml.replace(/^\ufeff?\s*<\?xml\s[^?<>]*\?>/, '');
  if (/<!/.test(body)) throw new XmlRefusal('contains a DOCTYPE, comment or CDATA section');
  if (/<\?/.test(body)) throw new XmlRefusal('contains a processing instruction');
  if ((body.match(/<[^/]/g)?.length ?? 0) > MAX_ELEMENTS) throw new XmlRefusal('has too many elements');
  const refuse = () => {
    throw new XmlRefusal('is not well-formed XML');
  };
  // The DOM parser accepts what XML forbids: unknown entities, a bare "&", control characters. Other parsers read these
  // differently.
  const strict = new SaxesParser({ xmlns: true });
  strict.on('error', refuse);
  strict.write(body).close();
  const document = new DOMParser({
    locator: {},
    errorHandler: { warning: refuse, error: refuse, fatalError: refuse },
  }).parseFromString(body, 'text/xml');
  const root = document?.documentElement as unknown as XmlElement | null;
  if (!root) throw new XmlRefusal('is not an XML document');
  for (const { attributes } of walk(root))
    if (attributes.length > MAX_ATTRIBUTES) throw new XmlRefusal('has too many attributes');
  return root;
}

/** Yields an element and all its descendants. @throws XmlRefusal if they are nested too deeply. */
export function* walk(element: XmlElement, depth = 0): Generator<XmlElement> {
  if (depth > MAX_DEPTH) throw new XmlRefusal('is nested too deeply');
  yield element;
  for (const child of elementsOf(element)) yield* walk(child, depth + 1);
}

export function elementsOf({ childNodes }: XmlElement): XmlElement[] {
  return Array.from(childNodes).filter(
    ({ nodeType }) => nodeType === ELEMENT_NODE,
  ) as unknown as XmlElement[];
}

export function isNamed(element: XmlElement, namespace: string, name: string): boolean {
  return element.localName === name && element.namespaceURI === namespace;
}

export function childrenOf(element: XmlElement, namespace: string, name: string): XmlElement[] {
  return elementsOf(element).filter((child) => isNamed(child, namespace, name));
}

/** Returns undefined unless there is exactly one. */
export function onlyChild(element: XmlElement, namespace: string, name: string): XmlElement | undefined {
  const [first, second] = childrenOf(element, namespace, name);
  return second === undefined ? first : undefined;
}

/** Returns the text of an element that contains nothing but text; undefined for any other element. */
export function textOf(element: XmlElement | undefined): string | undefined {
  if (!element) return undefined;
  const nodes = Array.from(element.childNodes);
  if (nodes.some(({ nodeType }) => nodeType !== TEXT_NODE)) return undefined;
  return nodes
    .map(({ nodeValue }) => nodeValue ?? '')
    .join('')
    .trim();
}

export function attributeOf(element: XmlElement | undefined, name: string): string | undefined {
  return element?.hasAttribute(name) ? (element.getAttribute(name) ?? undefined) : undefined;
}
