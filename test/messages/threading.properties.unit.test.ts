import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  extractMessageIds,
  getCandidateMessageIds,
  toSubjectMatch,
} from '../../domain/messages/message-ids.ts';
import { decodeText } from '../../domain/mime/charset.ts';
import { getFileName, sanitizeFileName } from '../../domain/mime/file-name.ts';
import { joinFlowedLines } from '../../domain/mime/format-flowed.ts';
import { getBaseSubject, toReplySubject } from '../../domain/mime/subject.ts';

const messageId = fc
  .tuple(fc.stringMatching(/^[a-z0-9.]{1,20}$/), fc.stringMatching(/^[a-z0-9.-]{1,20}$/))
  .map(([left, right]) => `${left}@${right}`);
const at = new Date('2026-01-01T00:00:00Z');

describe('threading with arbitrary references', () => {
  test('uses In-Reply-To first, then References from last to first, each once', () => {
    fc.assert(
      fc.property(messageId, fc.uniqueArray(messageId, { maxLength: 40 }), (parent, chain) => {
        const candidates = getCandidateMessageIds({
          inReplyTo: `<${parent}>`,
          references: chain.map((id) => `<${id}>`),
        });
        expect(candidates[0]).toBe(parent);
        expect(candidates.slice(1)).toEqual(chain.toReversed().filter((id) => id !== parent));
        expect(new Set(candidates).size).toBe(candidates.length);
      }),
    );
  });

  test('never matches a message with references by subject', () => {
    fc.assert(
      fc.property(messageId, fc.string(), (id, subject) => {
        const named = { subject: `Re: ${subject}`, at };
        expect(toSubjectMatch({ ...named, inReplyTo: `<${id}>`, references: [] })).toBeNull();
        expect(toSubjectMatch({ ...named, inReplyTo: null, references: [id] })).toBeNull();
      }),
    );
  });

  test('starts a new thread for a subject without a reply prefix', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z ]{0,40}$/), (subject) => {
        expect(toSubjectMatch({ subject, at, inReplyTo: null, references: [] })).toBeNull();
      }),
    );
  });

  test('returns at most 100 ids without brackets, white space or control characters', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.array(fc.string({ unit: 'binary' })),
        (inReplyTo, references) => {
          const ids = getCandidateMessageIds({ inReplyTo, references });
          expect(ids.length).toBeLessThanOrEqual(100);
          for (const id of ids) expect(id).not.toMatch(/[<>\s\p{Cc}]/u);
          for (const id of ids) expect(extractMessageIds(`<${id}>`)).toEqual([id]);
        },
      ),
    );
  });
});

describe('arbitrary subjects', () => {
  test('have a base subject without a prefix, and a reply subject with exactly one', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (subject) => {
        const base = getBaseSubject(subject);
        expect(getBaseSubject(base)).toBe(base);
        expect(toReplySubject(toReplySubject(subject))).toBe(toReplySubject(subject));
        expect(getBaseSubject(`Re: AW: Fwd: ${base}`)).toBe(base);
      }),
    );
  });
});

describe('arbitrary bytes', () => {
  test('are decoded without an error for any charset name', () => {
    fc.assert(
      fc.property(
        fc.uint8Array(),
        fc.oneof(fc.string(), fc.constantFrom('utf-7', 'cp437', 'gb18030')),
        (bytes, charset) => {
          expect(decodeText(bytes, charset).isWellFormed()).toBe(true);
        },
      ),
    );
  });

  test('keep UTF-8 text unchanged', () => {
    fc.assert(
      fc.property(
        fc
          .string({ unit: 'grapheme' })
          .filter((text) => !text.startsWith('\ufeff') && !text.includes('\u001b')),
        (text) => {
          expect(decodeText(Buffer.from(text), '')).toBe(text);
        },
      ),
    );
  });

  test('keep lines that are not flowed unchanged', () => {
    const line = fc.stringMatching(/^([a-z][a-z ]{0,30}[a-z]|)$/);
    fc.assert(
      fc.property(fc.array(line, { minLength: 1 }), (lines) => {
        expect(joinFlowedLines(lines.join('\r\n'), false)).toBe(lines.join('\n'));
      }),
    );
  });

  test('produce a safe file name or none', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (filename) => {
        const name = sanitizeFileName(
          getFileName(new Map([['content-disposition', { params: { filename } }]])),
        );
        if (name === undefined) return;
        expect(name).not.toMatch(/[/\\\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
        expect(['', '.', '..']).not.toContain(name);
        expect(name.length).toBeLessThanOrEqual(255);
      }),
    );
  });
});
