import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { startBillingApp } from '../billing/billing-app.ts';
import { createOrganization } from '../support/organizations.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import type { TestApp } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

const WEB = join(import.meta.dirname, '../../web');

/** Longer than every field of one line or option, and than every text of several lines. */
const LONG = { input: 'x'.repeat(10_000), select: 'x'.repeat(10_000), textarea: 'x'.repeat(1_030_000) };
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

/** Submits each form of the page with each of its fields too long. Returns what is wrong with the answers. */
async function tryForms(browser: PageClient, path: string): Promise<{ faults: string[]; actions: string[] }> {
  const { body } = await browser.open(path);
  const forms = formsOf(body);
  const faults: string[] = [];
  for (const form of forms) {
    const filled = toValues(form.fields, 'sample');
    for (const field of form.fields) {
      const answer = await browser.post(form.action, {
        ...form.hidden,
        ...filled,
        [field.name]: LONG[field.tag],
      });
      const again = formsOf(answer.body).find((each) => each.identity === form.identity);
      const find = (name: string) => again?.fields.find((each) => each.name === name);
      const lost = form.fields.filter(
        ({ name, type, sample }) =>
          name !== field.name && type !== 'password' && find(name)?.value !== sample,
      );
      const found = [
        answer.statusCode === 400 ? '' : `status ${answer.statusCode}`,
        find(field.name)?.isInvalid ? '' : 'no error at the field',
        answer.body.includes(SECRET) ? 'a password' : '',
        ...lost.map(({ name }) => `lost ${name}`),
      ].filter(Boolean);
      if (found.length > 0) faults.push(`${form.action} ${field.name}: ${found.join(', ')}`);
    }
    for (const name of Object.keys(form.hidden).filter((each) => each !== 'csrf')) {
      const answer = await browser.post(form.action, { ...form.hidden, ...filled, [name]: LONG.input });
      const isTold = answer.statusCode === 400 && answer.body.includes('role="alert"');
      if (!isTold || !formsOf(answer.body).some(({ action }) => action === form.action))
        faults.push(`${form.action} ${name}, which is hidden: status ${answer.statusCode}`);
    }
  }
  const fields = forms.flatMap((form) => [...form.fields, ...Object.keys(form.hidden)]);
  if (fields.length === 0) faults.push(`${path}: no field`);
  return { faults, actions: forms.map(({ action }) => action) };
}

/** Submits the forms of several pages. */
async function tryPages(browser: PageClient, paths: readonly string[]) {
  const faults: string[] = [];
  const actions: string[] = [];
  for (const path of paths) {
    const tried = await tryForms(browser, path);
    faults.push(...tried.faults);
    actions.push(...tried.actions);
  }
  return { faults, actions };
}

/** Paths of the forms in the code of a folder of `web/`. */
function formPaths(folder: string): RegExp[] {
  const sources = readdirSync(join(WEB, folder)).filter((name) => name.endsWith('.routes.ts'));
  return sources
    .flatMap((name) => [
      ...readFileSync(join(WEB, folder, name), 'utf8').matchAll(
        /\b(?:pages|console)\.form\(\s*app,\s*['`]([^'`]+)/g,
      ),
    ])
    .map(([, path = '']) => new RegExp(`^${path.replaceAll(/:\w+|\$\{\w+\}/g, '[^/]+')}$`));
}

/** The forms of the folder that none of the actions submits. */
const findUntried = (folder: string, actions: readonly string[]): string[] =>
  formPaths(folder)
    .filter((pattern) => !actions.some((action) => pattern.test(action.split('?')[0] ?? '')))
    .map(String);

async function signIn(app: TestApp, userId: string): Promise<PageClient> {
  const browser = createPageClient(app);
  const { token } = await createTestSession(app.worker, userId, { factors: ['totp'] });
  browser.cookies.set('session', token);
  return browser;
}

describe('a text that is too long stands with its error at its field, and the other values stay', () => {
  const app = useTestApp();

  test('in forms of accounts', async () => {
    expect((await tryPages(createPageClient(app), PUBLIC)).faults).toEqual([]);
  });

  test('in forms of the console', async () => {
    const { ownerId } = await createOrganization(app.worker);
    expect((await tryPages(await signIn(app, ownerId), SIGNED_IN)).faults).toEqual([]);
  });
});

describe('so do the forms of billing', () => {
  const app = useResource(startBillingApp, (running) => running.stop());

  test('before and after a subscription', async () => {
    const free = await app.createFree();
    const paying = await app.createPaying();
    const first = await tryPages(await signIn(app, free.ownerId), ['/billing']);
    const second = await tryPages(await signIn(app, paying.ownerId), ['/billing']);
    expect([...first.faults, ...second.faults]).toEqual([]);
    expect(findUntried('billing', [...first.actions, ...second.actions])).toEqual([]);
  });
});

interface Control {
  tag: keyof typeof LONG;
  type: string;
  name: string;
  /** Undefined for a checkbox that is not checked. */
  value: string | undefined;
  isInvalid: boolean;
  /** Another value that the control takes. */
  sample: string;
}

/** The forms of a page, with what a person fills in. */
function formsOf(html: string) {
  return [...html.matchAll(/<form[^>]* method="post" action="([^"]*)"[^>]*>(.*?)<\/form>/gs)]
    .map(([, action = '', content = '']) => {
      const controls = controlsOf(content);
      const hidden = controls.filter(({ type, name }) => type === 'hidden' && name !== 'csrf');
      return {
        // Several forms of a page have the same action, and another hidden id.
        identity: [action, ...hidden.map(({ name, value }) => `${name}=${value}`)].join(),
        action: action.replaceAll('&amp;', '&'),
        hidden: toValues(
          controls.filter(({ type }) => type === 'hidden'),
          'value',
        ),
        fields: controls.filter(({ type }) => SAMPLES[type] !== undefined),
      };
    })
    .filter(({ action }) => action !== '/logout');
}

const SAMPLES: Record<string, string> = {
  text: 'kept text',
  search: 'kept text',
  textarea: 'kept text',
  url: 'https://kept.example',
  email: 'ada@people.example',
  password: SECRET,
  number: '7',
  date: '2030-01-02',
  'datetime-local': '2030-01-02T10:00',
  select: '',
  checkbox: 'on',
};

const toValues = (controls: readonly Control[], which: 'value' | 'sample') =>
  Object.fromEntries(controls.map((control) => [control.name, control[which] ?? '']));

function controlsOf(content: string): Control[] {
  const inputs = [...content.matchAll(/<(input) type="([^"]*)"([^>]*)>/g)];
  const textareas = [...content.matchAll(/<(textarea)()([^>]*)>\n?([^<]*)/g)];
  const selects = [...content.matchAll(/<(select)()([^>]*)>(.*?)<\/select>/gs)];
  const controls = [...inputs, ...textareas, ...selects].map(
    ([, tag = '', kind = '', attributes = '', inner = '']): Control => {
      const type = kind || tag;
      const attribute = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(attributes)?.[1];
      const isUnchecked = type === 'checkbox' && !/ checked\b/.test(attributes);
      return {
        tag: tag as Control['tag'],
        type,
        name: attribute('name') ?? '',
        value: isUnchecked
          ? undefined
          : type === 'textarea'
            ? inner
            : type === 'select'
              ? /value="([^"]*)" selected/.exec(inner)?.[1]
              : attribute('value'),
        isInvalid: attributes.includes('aria-invalid="true"'),
        sample:
          type === 'select' ? (/.*<option value="([^"]*)"/s.exec(inner)?.[1] ?? '') : (SAMPLES[type] ?? ''),
      };
    },
  );
  // Checkboxes of one name are a list, which holds no text.
  return controls.filter(({ name }) => controls.filter((each) => each.name === name).length === 1);
}
