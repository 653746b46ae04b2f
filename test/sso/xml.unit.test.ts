import { describe, expect, test } from '@jest/globals';
import {
  attributeOf,
  childrenOf,
  elementsOf,
  onlyChild,
  parseXml,
  textOf,
  walk,
  XmlRefusal,
} from '../../domain/sso/saml/xml.ts';

const nested = (depth: number) => `${'<a>'.repeat(depth)}${'</a>'.repeat(depth)}`;
const withAttributes = (count: number) =>
  `<a><b ${Array.from({ length: count }, (_, index) => `x${index}="1"`).join(' ')}/></a>`;

describe('a document is taken', () => {
  test.each([
    ['alone', '<a/>'],
    ['after an XML declaration', '<?xml version="1.0" encoding="UTF-8"?>\n<a/>'],
    ['after a byte order mark and white space', '\ufeff \n<?xml version="1.0"?><a/>'],
    ['with the entities of XML', '<a>&lt;&amp;&#65;</a>'],
    ['with 61 levels', nested(61)],
    ['with 5,000 elements', `<a>${'<b/>'.repeat(4_999)}</a>`],
    ['with 50 attributes', withAttributes(50)],
  ])('%s', (_name, xml) => expect(parseXml(xml).localName).toBe('a'));
});

describe('a document is refused', () => {
  test.each([
    ['that is empty', '', /XML/],
    ['that is text', 'a', /XML/],
    ['that does not end', '<a>', /well-formed/],
    ['with two roots', '<a/><a/>', /well-formed/],
    ['with a bare ampersand', '<a>R & D</a>', /well-formed/],
    ['with an unknown entity', '<a>&nbsp;</a>', /well-formed/],
    ['with an attribute that occurs twice', '<a b="1" b="2"/>', /well-formed/],
    ['with a prefix that it does not declare', '<x:a/>', /well-formed/],
    ['with a control character', '<a>\u0001</a>', /well-formed/],
    ['with a DTD', '<!DOCTYPE a><a/>', /DOCTYPE/],
    ['with a comment within a value', '<a>ada@example.com<!-- -->.evil.test</a>', /comment/],
    ['with a CDATA section', '<a><![CDATA[x]]></a>', /CDATA/],
    ['with a processing instruction', '<a><?php x?></a>', /processing/],
    ['with a second XML declaration', '<?xml version="1.0"?><?xml version="1.0"?><a/>', /processing/],
    ['with 62 levels', nested(62), /deeply/],
    ['with 5,001 elements', `<a>${'<b/>'.repeat(5_000)}</a>`, /too many elements/],
    ['with 51 attributes', withAttributes(51), /too many attributes/],
  ])('%s', (_name, xml, problem) => {
    expect(() => parseXml(xml)).toThrow(XmlRefusal);
    expect(() => parseXml(xml)).toThrow(problem);
  });
});

describe('in a document', () => {
  const root = parseXml(
    '<a xmlns="urn:one" xmlns:t="urn:two" id="1" empty=""><b>first</b>\n<t:b>other</t:b><c> some\n text </c><d><b>below</b></d><b>second</b></a>',
  );

  test('children are found by namespace and name, and only direct ones', () => {
    expect(childrenOf(root, 'urn:one', 'b').map(textOf)).toEqual(['first', 'second']);
    expect(childrenOf(root, 'urn:two', 'b').map(textOf)).toEqual(['other']);
    expect(elementsOf(root).map(({ localName }) => localName)).toEqual(['b', 'b', 'c', 'd', 'b']);
  });

  test('a child that must be single is not found among several', () => {
    expect(textOf(onlyChild(root, 'urn:two', 'b'))).toBe('other');
    expect(onlyChild(root, 'urn:one', 'b')).toBeUndefined();
    expect(onlyChild(root, 'urn:one', 'e')).toBeUndefined();
  });

  test('text is that of an element without others, trimmed', () => {
    expect(textOf(onlyChild(root, 'urn:one', 'c'))).toBe('some\n text');
    expect(textOf(onlyChild(root, 'urn:one', 'd'))).toBeUndefined();
    expect(textOf(undefined)).toBeUndefined();
  });

  test('an attribute that is empty differs from one that is missing', () => {
    expect(['id', 'empty', 'none'].map((name) => attributeOf(root, name))).toEqual(['1', '', undefined]);
    expect(attributeOf(undefined, 'id')).toBeUndefined();
  });

  test('all elements are walked in their order', () => {
    expect([...walk(root)].map(({ localName }) => localName).join('')).toBe('abbcdbb');
  });
});
