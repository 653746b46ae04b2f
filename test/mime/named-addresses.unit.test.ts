import { describe, expect, test } from '@jest/globals';
import { findNamedAddresses, MAX_NAMED_ADDRESSES } from '../../domain/mime/injection/named-addresses.ts';

describe('addresses in a text', () => {
  test.each([
    ['Write to ada@people.example.', ['ada@people.example']],
    ['<ADA@People.Example>', ['ada@people.example']],
    [
      'mailto:ada%40people.example?cc=bob@people.example',
      ['ada@people.example', 'people.example?cc=bob@people.example', 'bob@people.example'],
    ],
    ['ada&#64;people.example, bob&#x40;people.example', ['ada@people.example', 'bob@people.example']],
    ['&#97;d&#x61;@people&period;example', ['ada@people.example']],
    ['a\u200bda@peo\u00adple.exa\u2060mple', ['ada@people.example']],
    ['ada&commat;people.example&#10;&#999;%00', ['ada@people.example']],
    ['*ada@people.example*', ['*ada@people.example', 'ada@people.example']],
    ["'ada@people.example'", ["'ada@people.example", 'ada@people.example']],
    ["o'brien@people.example", ["o'brien@people.example", 'brien@people.example']],
    ['_ada_@people.example', ['_ada_@people.example', 'ada_@people.example']],
    ['ada+x@people.example', ['ada+x@people.example']],
    ['あda@people.exampleへ', ['da@people.example', 'da@people.xn--example-ch4f']],
    ['ａｄａ＠ｐｅｏｐｌｅ．ｅｘａｍｐｌｅ', ['ada@people.example']],
    ['ada@bücher.example', ['ada@xn--bcher-kva.example']],
    ['a@b@people.example', ['b@people.example']],
    ['at @ alone, ada@, @people.example, ada@localhost, 1@2', []],
    ['ada@people.example.Thanks', ['ada@people.example', 'ada@people.example.thanks']],
    [
      'ada@mail.people.example-now',
      ['ada@mail.people', 'ada@mail.people.example', 'ada@mail.people.example-now'],
    ],
    ['', []],
  ])('%j', (text, found) => {
    expect(findNamedAddresses([text])?.sort()).toEqual(found.sort());
  });

  test('are found in each text, once', () => {
    expect(
      findNamedAddresses(['a@people.example a@people.example', 'b@people.example', 'A@people.example']),
    ).toEqual(['a@people.example', 'b@people.example']);
  });

  test('are too many to list above 200, or in more text than is read', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) => `a${index}@people.example`).join();
    expect(findNamedAddresses([many(MAX_NAMED_ADDRESSES)])).toHaveLength(MAX_NAMED_ADDRESSES);
    expect(findNamedAddresses([many(MAX_NAMED_ADDRESSES + 1)])).toBeNull();
    expect(findNamedAddresses(['x'.repeat(2_000_000)])).toEqual([]);
    expect(findNamedAddresses(['x'.repeat(2_000_000), 'x'])).toBeNull();
  });
});
