import type { LightMyRequestResponse } from 'fastify';
import { newNetwork } from './accounts.ts';
import { type FormPart, formCall } from './form.ts';
import type { TestApp } from './test-app.ts';

/** A browser without scripts: keeps cookies, and submits the forms of the pages it opens. */
export interface PageClient {
  /** Opens a page, and follows redirects to other pages. */
  open(path: string): Promise<LightMyRequestResponse>;
  /** Submits the form of the last page with this action, with its hidden fields. Follows redirects. */
  submit(action: string, fields?: Fields): Promise<LightMyRequestResponse>;
  /** As {@link submit}, for a form with files, which follow its fields. */
  submitFiles(action: string, fields: Fields, files: readonly FormPart[]): Promise<LightMyRequestResponse>;
  /** Posts fields to a path without opening a page first. */
  post(path: string, fields: Fields): Promise<LightMyRequestResponse>;
  readonly cookies: Map<string, string>;
  /** Path and query of the last page. */
  readonly path: string;
}

/** A list for a field that occurs several times. */
export type Fields = Record<string, string | readonly string[]>;

const MAX_REDIRECTS = 5;

const encode = (fields: Fields): string =>
  new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]) =>
      [value].flat().map((one): [string, string] => [name, one]),
    ),
  ).toString();

export function createPageClient(app: TestApp): PageClient {
  const cookies = new Map<string, string>();
  const network = newNetwork();
  let path = '/';
  let html = '';

  const send = (method: 'GET' | 'POST', url: string, fields?: Fields) =>
    request(method, url, fields && { type: 'application/x-www-form-urlencoded', bytes: encode(fields) });

  async function request(
    method: 'GET' | 'POST',
    url: string,
    body: { type: string; bytes: string | Buffer } | undefined,
  ) {
    const response = await app.app.inject({
      method,
      url,
      headers: {
        ...network,
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(body ? { 'content-type': body.type } : {}),
      },
      payload: body?.bytes,
    });
    for (const { name, value, maxAge } of response.cookies)
      if (value === '' || maxAge === 0) cookies.delete(name);
      else cookies.set(name, value);
    return response;
  }

  async function follow(response: LightMyRequestResponse, url: string): Promise<LightMyRequestResponse> {
    let last = response;
    let at = url;
    for (let count = 0; count < MAX_REDIRECTS && last.headers.location !== undefined; count += 1) {
      at = String(last.headers.location);
      if (!at.startsWith('/')) break;
      last = await send('GET', at);
    }
    path = at;
    html = last.body;
    return last;
  }

  return {
    cookies,
    get path() {
      return path;
    },
    open: async (url) => follow(await send('GET', url), url),
    submit: async (action, fields = {}) =>
      follow(await send('POST', action, { ...hiddenFields(html, action), ...fields }), action),
    async submitFiles(action, fields, files) {
      const all = Object.entries({ ...hiddenFields(html, action), ...fields }).flatMap(([name, value]) =>
        [value].flat().map((content): FormPart => ({ name, content })),
      );
      const { raw, headers } = formCall([...all, ...files]);
      const body = { type: headers?.['content-type'] ?? '', bytes: raw ?? '' };
      return follow(await request('POST', action, body), action);
    },
    post: (url, fields) => send('POST', url, fields),
  };
}

function hiddenFields(html: string, action: string): Record<string, string> {
  const forms = [...html.matchAll(/<form[^>]* method="post" action="([^"]*)"[^>]*>(.*?)<\/form>/gs)];
  const form = forms.find(([, target]) => target?.replaceAll('&amp;', '&') === action)?.[2];
  if (form === undefined) throw new Error(`The page has no form with the action ${action}:\n${html}`);
  const inputs = [...form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
  return Object.fromEntries(inputs.map(([, name = '', value = '']) => [name, unescapeHtml(value)]));
}

const unescapeHtml = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
