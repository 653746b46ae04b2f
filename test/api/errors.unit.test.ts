import { describe, expect, test } from '@jest/globals';
import { toClientPath } from '../../api/plugins/client-path.ts';
import { findNearestName } from '../../api/plugins/nearest-name.ts';
import { buildExample } from '../../api/plugins/schema-example.ts';
import { AppError } from '../../platform/errors.ts';

test.each([
  ['/body/to/0/email', 'to[0].email'],
  ['/body', 'body'],
  ['/query/limit', 'limit'],
  ['/params/id', 'id'],
  ['/headers/if-match', 'If-Match'],
  ['/body/headers/X-a~1b', 'headers["X-a/b"]'],
  ['/body/attachments/10/content', 'attachments[10].content'],
])('%s is %s to a client', (pointer, path) => expect(toClientPath(pointer)).toBe(path));

describe('the nearest name', () => {
  const known = [
    'to',
    'cc',
    'reply_to',
    'subject',
    'text_body',
    'html_body',
    'attachments',
    'labels',
    'send_at',
  ];
  test.each([
    ['text', 'text_body'],
    ['html', 'html_body'],
    ['body', 'text_body'],
    ['replyTo', 'reply_to'],
    ['recipients', 'to'],
    ['attachment', 'attachments'],
    ['subjct', 'subject'],
    ['SendAt', 'send_at'],
    ['tags', 'labels'],
    ['zzz', undefined],
    ['', undefined],
    ['constructor', undefined],
    ['x'.repeat(100_000), undefined],
  ])('of %s', (name, nearest) => expect(findNearestName(name, known)).toBe(nearest));
});

test('an example is made from the types of a schema', () => {
  const schema = {
    type: 'object',
    required: ['at', 'kind', 'names'],
    properties: {
      at: { type: 'string', format: 'date-time' },
      kind: { type: 'string', enum: ['a', 'b'] },
      names: { type: ['array', 'null'], items: { $ref: 'Name#' } },
      other: { type: 'integer' },
    },
  } as const;
  expect(buildExample(schema, () => ({ type: 'string', examples: ['Ada'] }))).toEqual({
    at: '2026-11-21T09:30:00.000Z',
    kind: 'a',
    names: ['Ada'],
  });
});

test('an error about a dependency that is unavailable says when to try again', () => {
  const texts = { detail: 'The file storage is not responding.', fix: 'Repeat the request.' };
  expect(new AppError('unavailable', texts).headers).toEqual({ 'retry-after': '5' });
  expect(new AppError('unavailable', { ...texts, headers: { 'retry-after': '60' } }).headers).toEqual({
    'retry-after': '60',
  });
  expect(new AppError('conflict', texts).headers).toEqual({});
});
