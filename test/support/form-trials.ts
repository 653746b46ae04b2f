import type { PageClient } from './page-client.ts';
import type { TestApp } from './test-app.ts';

/** Longer than every field of one line or option, and than every text of several lines. */
const LONG = { input: 'x'.repeat(10_000), select: 'x'.repeat(10_000), textarea: 'x'.repeat(1_030_000) };
const SECRET = 'quiet-otter-marble-77';
const ID = /[a-z]{3}_[0-9a-z]{26}|(?<==)\d+$/;

/** Submits each form of the page with each of its fields too long. Returns what is wrong with the answers. */
async function tryForms(browser: PageClient, path: string): Promise<{ faults: string[]; actions: string[] }> {
  const { body } = await browser.open(path);
  // Of forms that differ in an id alone, the last one: an error must not stand at the first.
  const forms = [...new Map(formsOf(body).map((form) => [form.identity.replace(ID, ''), form])).values()];
  const faults: string[] = [];
  for (const form of forms) {
    const filled = toValues(form.fields, 'sample');
    for (const field of form.fields) {
      const answer = await browser.post(form.action, {
        ...form.hidden,
        ...filled,
        [field.name]: LONG[field.tag],
      });
      const shown = formsOf(answer.body);
      const again = shown.find((each) => each.identity === form.identity);
      const find = (name: string) => again?.fields.find((each) => each.name === name);
      const lost = form.fields.filter(
        ({ name, type, sample }) =>
          name !== field.name && type !== 'password' && find(name)?.value !== sample,
      );
      const found = [
        answer.statusCode === 400 ? '' : `status ${answer.statusCode}`,
        find(field.name)?.isInvalid ? '' : 'no error at the field',
        shown.flatMap(({ fields }) => fields).filter(({ isInvalid }) => isInvalid).length > 1
          ? 'errors at other fields'
          : '',
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
export async function tryPages(browser: PageClient, paths: readonly string[]) {
  const faults: string[] = [];
  const actions: string[] = [];
  for (const path of paths) {
    const tried = await tryForms(browser, path);
    faults.push(...tried.faults);
    actions.push(...tried.actions);
  }
  return { faults, actions };
}

/** Paths of the POST routes of the service, with their parameters, as Fastify prints its tree. */
function listPosts({ app }: Pick<TestApp, 'app'>): string[] {
  const parts: string[] = [];
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S+)(?: \((.*)\))?$/.exec(line) ?? [];
      parts.splice(indent.length / 4, Number.POSITIVE_INFINITY, part);
      return methods.split(', ').includes('POST') ? [parts.join('')] : [];
    });
}

/** POST routes of the area that none of the forms submits to. @param actions of forms that were tried. */
export function findUntried(app: Pick<TestApp, 'app'>, area: RegExp, actions: readonly string[]): string[] {
  const paths = actions.map((action) => action.split('?')[0] ?? '');
  const posts = listPosts(app).filter((path) => area.test(path));
  if (posts.length === 0) throw new Error(`There is no POST route in ${area}`);
  return posts.filter((post) => {
    const pattern = new RegExp(`^${post.replaceAll(/:\w+/g, '[^/]+')}$`);
    return !paths.some((path) => pattern.test(path));
  });
}

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
          type === 'select'
            ? (/.*<option value="([^"]*)"/s.exec(inner)?.[1] ?? '')
            : ((attribute('inputmode') === 'numeric' ? SAMPLES.number : SAMPLES[type]) ?? ''),
      };
    },
  );
  // Checkboxes of one name are a list, which holds no text.
  return controls.filter(({ name }) => controls.filter((each) => each.name === name).length === 1);
}
