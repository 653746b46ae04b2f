import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { DEFERRED_ACTS } from '../../domain/identity/requester.ts';
import { listSourceFiles } from './import-graph.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');
const read = (file: string): string => readFileSync(resolve(ROOT, file), 'utf8');
const ACTS = Object.keys(DEFERRED_ACTS).sort();

/** The section of docs/security.md: rows are the acts whose requester is asked again, bullets those that go on. */
const SECTION = /\n## Acts that happen later\n([\s\S]*?)\n## /.exec(read('docs/security.md'))?.[1] ?? '';
const ROWS = SECTION.split('\n').filter((line) => /^\| `/.test(line));
const BULLETS = SECTION.split(/\n(?=- )/).filter((part) => part.startsWith('- '));
const wordsOf = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);

/**
 * Columns that say who did something, or hold a token with which something is done later. Each is the requester of a deferred
 * act, or cannot be one.
 */
const REQUESTERS: Record<string, { act: keyof typeof DEFERRED_ACTS } | string> = {
  'announcement.createdBy': { act: 'announcement' },
  'api-key.createdByKeyId': 'a key is a credential of its own, which ends with the membership of its creator',
  'api-key.createdByUserId': 'as createdByKeyId',
  'api-key.previousTokenHash': 'a credential, checked at each request',
  'api-key.tokenHash': 'a credential, checked at each request',
  'approved-recipient.approvedBy': { act: 'approval' },
  'account-token.tokenHash': 'a person proves their own address or account',
  'connection-token.tokenHash': 'a credential, checked at each request',
  'webhook-bulk-job.requestedById': { act: 'webhook_job' },
  'webhook-bulk-job.requestedByKind': { act: 'webhook_job' },
  'deletion.deletedBy': 'access ended when it was asked; the purge only follows',
  'draft.createdById': 'a record',
  'draft.createdByKind': 'a record',
  'draft.decidedById': { act: 'approval' },
  'draft.lastEditedById': 'asks for nothing: binds a person’s send to a version',
  'draft.lastEditedByKind': 'as lastEditedById',
  'draft.requestedById': { act: 'send' },
  'draft.requestedByKind': { act: 'send' },
  'export.requestedBy': { act: 'export' },
  'impersonation.staffId': 'a credential, checked at each request',
  'impersonation.tokenHash': 'a credential, checked at each request',
  'inbox.sendPausedById': 'took effect when it was asked',
  'inbox.sendPausedByKind': 'took effect when it was asked',
  'invitation.acceptedByUserId': 'a record',
  'invitation.invitedByKeyId': { act: 'invitation' },
  'invitation.invitedByUserId': { act: 'invitation' },
  'invitation.tokenHash': { act: 'invitation' },
  'known-device.tokenHash': 'a person signs in',
  'limit-override.createdBy': 'took effect when it was asked',
  'message.injectionDismissedBy': 'took effect when it was asked',
  'mfa-challenge.browserTokenHash': 'a person signs in',
  'mfa-challenge.tokenHash': 'a person signs in',
  'oauth-transaction.browserTokenHash': 'a person signs in',
  'oauth-transaction.stateHash': 'a person signs in',
  'recovery-code.codeHash': 'a person signs in',
  'session.tokenHash': 'a credential, checked at each request',
  'sign-up.browserTokenHash': 'a person proves their own address',
  'sign-up.linkTokenHash': 'a person proves their own address',
  'sso-setup-link.createdByKeyId': { act: 'sso_setup_link' },
  'sso-setup-link.createdByUserId': { act: 'sso_setup_link' },
  'sso-setup-link.sessionHash': { act: 'sso_setup_link' },
  'sso-setup-link.tokenHash': { act: 'sso_setup_link' },
  'sso-transaction.tokenHash': 'a person signs in, or tests a configuration, which activates nothing',
  'staff-audit-entry.staffId': 'a record',
  'staff-job.staffId': { act: 'staff_job' },
  'staff-member.createdBy': 'took effect when it was asked',
  'suspension.liftedById': 'a record',
  'suspension.liftedByKind': 'a record',
  'toggle.changedBy': 'took effect when it was asked',
  'upgrade-request.decidedBy': 'a record',
  'upgrade-request.requestedById': { act: 'upgrade_request' },
  'upgrade-request.requestedByKind': { act: 'upgrade_request' },
  'webauthn-challenge.mfaTokenHash': 'a person signs in',
};

const REQUESTER_COLUMN =
  /^ {4}(\w+By(?:Kind|Id|UserId|KeyId)?|staffId|(?:\w*[tT]oken|session|code|state)Hash): /gm;

test('docs/security.md has a row for every deferred act, and each names who is asked and what happens', () => {
  expect(ROWS.map((row) => wordsOf(row)[0]).sort()).toEqual(ACTS);
  for (const row of ROWS) {
    expect(
      row
        .split('|')
        .slice(1, -1)
        .filter((cell) => cell.trim() !== ''),
    ).toHaveLength(6);
    const tests = wordsOf(row).filter((word) => word.startsWith('test/'));
    expect(tests.filter((file) => existsSync(resolve(ROOT, file)))).toHaveLength(1);
  }
});

test('every deferred act asks its requester again, by the one function', () => {
  const asked = listSourceFiles(['domain'])
    .filter((file) => !file.startsWith('domain/identity/requester'))
    .map((file) => readFileSync(resolve(ROOT, file), 'utf8'))
    .filter((source) => /\b(findRequesterProblem|requesterProblem)\(/.test(source))
    .flatMap((source) => [...source.matchAll(/\{\s*act: '(\w+)'/g)].map(([, act = '']) => act));
  expect([...new Set(asked)].sort()).toEqual(ACTS);
});

test('every workflow type is in the table of deferred acts, or in the list of what goes on', () => {
  const types = [...read('workflows/index.ts').matchAll(/export \{ (\w+)/g)].map(([, name = '']) => name);
  expect(types.length).toBeGreaterThan(25);
  const places = types.map((type) => [
    type,
    [...ROWS, ...BULLETS].filter((part) => wordsOf(part).includes(type)).length,
  ]);
  expect(places).toEqual(types.map((type) => [type, 1]));
});

test('every column that names a requester, or holds a token for later, belongs to an act or cannot', () => {
  const columns = listSourceFiles(['domain'])
    .filter((file) => file.endsWith('.entity.ts'))
    .flatMap((file) =>
      readFileSync(resolve(ROOT, file), 'utf8')
        .split(/= defineEntity\(/)
        .slice(1),
    )
    .flatMap((source) => {
      const entity = /name: '(\w+)'/.exec(source)?.[1] ?? '';
      const kebab = entity.replace(/\B[A-Z]/g, '-$&').toLowerCase();
      return [...source.matchAll(REQUESTER_COLUMN)].map(([, name = '']) => `${kebab}.${name}`);
    });
  expect(columns.sort()).toEqual(Object.keys(REQUESTERS).sort());
});
