import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { createOrganization } from '../support/organizations.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';

const WEB = join(import.meta.dirname, '../../web');
/** POST routes that are no `pages.form`, with the reason. */
const PLAIN: [pattern: RegExp, why: string][] = [
  [/\/options$/, 'a script asks for them, and shows no page'],
  [/^\/logout$/, 'has no field'],
  [/^\/login\/(?:link|former|former\/join)$/, 'have no field that a person fills in'],
  [/^\/impersonation\/end$/, 'has no field'],
  [/^\/billing\//, 'have choices alone'],
];

const POSTS = readdirSync(WEB, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.routes.ts') && !name.startsWith('staff/'))
  .flatMap((name) => [
    ...readFileSync(join(WEB, name), 'utf8').matchAll(
      /\b(app\.post|pages\.form)\(\s*(?:app, )?['`]?([^'`,]+)/g,
    ),
  ])
  .map(([, by, path = '']) => ({ by, path }));

test('every form of a person shows its page again when its schema is not met', () => {
  const plain = POSTS.filter(({ by }) => by === 'app.post').map(({ path }) => path);
  expect(POSTS.length - plain.length).toBeGreaterThan(60);
  // The link that opens the set-up is a hidden field: without a valid one there is nothing to show.
  const unknown = plain.filter((path) => path !== 'PATH' && !PLAIN.some(([pattern]) => pattern.test(path)));
  expect(unknown).toEqual([]);
});

/** Longer than every field of one line, and than every text of several. */
const LONG = { input: 'x'.repeat(10_000), textarea: 'x'.repeat(300_000) };
const SECRET = 'quiet-otter-marble-77';

/** Pages whose forms are tried. */
const PUBLIC = [
  '/login',
  '/login/sso',
  '/signup',
  '/forgot-password',
  '/recover',
  '/reset-password?token=unknown',
  '/verify-email?token=unknown',
];
const SIGNED_IN = [
  '/account',
  '/organizations',
  '/domains',
  '/inboxes/new',
  '/keys/new',
  '/members',
  '/reputation/lists',
  '/reputation/suppressions',
  '/settings',
  '/settings/environments',
  '/settings/retention',
  '/settings/sending',
  '/settings/single-sign-on',
  '/usage',
  '/webhooks/new',
];

describe('a text that is too long', () => {
  const app = useTestApp();

  async function tryForms(browser: PageClient, path: string) {
    const { body } = await browser.open(path);
    const faults: string[] = [];
    for (const form of formsOf(body))
      for (const field of form.fields) {
        const filled = Object.fromEntries(form.fields.map(({ name, type }) => [name, sample(type)]));
        const answer = await browser.post(form.action, {
          ...form.hidden,
          ...filled,
          [field.name]: LONG[field.tag],
        });
        const again = formsOf(answer.body).find((each) => each.identity === form.identity);
        const at = again?.fields.find(({ name }) => name === field.name);
        const found = [
          answer.statusCode === 400 ? '' : `status ${answer.statusCode}`,
          at?.isInvalid ? '' : 'no error at the field',
          answer.body.includes(SECRET) ? 'a password' : '',
          form.fields
            .filter(({ name, type }) => name !== field.name && type !== 'password')
            .every(
              ({ name, type }) => again?.fields.find((each) => each.name === name)?.value === sample(type),
            )
            ? ''
            : 'lost values',
        ].filter(Boolean);
        if (found.length > 0) faults.push(`${form.action} ${field.name}: ${found.join(', ')}`);
      }
    return { faults, count: formsOf(body).reduce((sum, { fields }) => sum + fields.length, 0) };
  }

  test.each([
    ['of accounts', PUBLIC, false],
    ['of the console', SIGNED_IN, true],
  ])(
    'stands with its error at its field, and the other values stay, in forms %s',
    async (_, paths, isSignedIn) => {
      const { ownerId } = await createOrganization(app.worker);
      const browser = createPageClient(app);
      if (isSignedIn)
        browser.cookies.set(
          'session',
          (await createTestSession(app.worker, ownerId, { factors: ['totp'] })).token,
        );
      const faults: string[] = [];
      for (const path of paths) {
        const tried = await tryForms(browser, path);
        if (tried.count === 0) faults.push(`${path}: no field`);
        faults.push(...tried.faults);
      }
      expect(faults).toEqual([]);
    },
  );
});

function sample(type: string): string {
  if (type === 'password') return SECRET;
  if (type === 'number') return '7';
  return type === 'email' ? 'ada@people.example' : 'kept text';
}

/** Forms with text fields that a person fills in. */
function formsOf(html: string) {
  return [...html.matchAll(/<form[^>]* method="post" action="([^"]*)"[^>]*>(.*?)<\/form>/gs)]
    .map(([, action = '', content = '']) => ({
      // Several forms of a page have the same action, and another hidden id.
      identity: [action, ...content.matchAll(/<input type="hidden" name="(?!csrf)[^>]*>/g)].join(),
      action: action.replaceAll('&amp;', '&'),
      hidden: Object.fromEntries(
        [...content.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(
          ([, name = '', value = '']) => [name, value],
        ),
      ),
      fields: [
        ...content.matchAll(/<(input) type="(text|email|password|url|search)"([^>]*)>/g),
        ...content.matchAll(/<(textarea)()([^>]*)>\n?([^<]*)/g),
      ].map(([, tag, type = '', attributes = '', text]) => ({
        tag: tag as keyof typeof LONG,
        type,
        name: / name="([^"]*)"/.exec(attributes)?.[1] ?? '',
        value: text ?? / value="([^"]*)"/.exec(attributes)?.[1],
        isInvalid: attributes.includes('aria-invalid="true"'),
      })),
    }))
    .filter(({ action, fields }) => fields.length > 0 && action !== '/logout');
}
