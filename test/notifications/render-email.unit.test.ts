import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseDocument } from 'htmlparser2';
import { escapeHtml, renderEmail } from '../../domain/notifications/render-email.ts';
import { renderTemplate } from '../../domain/notifications/templates.ts';

const params = {
  endpointId: 'whe_1',
  environmentId: 'env_1',
  url: 'https://receiver.example/hook?a=1&b=2',
  reason: 'Every attempt failed for 5 days.',
  failingSince: '2026-01-01 00:00 UTC',
};

/** Names of all elements, in order. */
function elements(html: string): string[] {
  const names: string[] = [];
  const walk = (node: { children?: unknown[]; type?: string; name?: string }) => {
    if (node.name) names.push(node.name);
    for (const child of node.children ?? []) walk(child as typeof node);
  };
  walk(parseDocument(html) as unknown as { children: unknown[] });
  return names;
}

describe('the email about a disabled endpoint', () => {
  test('names the endpoint, the reason and the remedy, as text and HTML', () => {
    const { subject, text, html } = renderEmail(
      renderTemplate('webhook-endpoint-disabled', params),
      'https://mail.example',
    );
    expect(subject).toBe('Webhook endpoint disabled: receiver.example');
    for (const fact of [
      'whe_1',
      'env_1',
      params.url,
      params.reason,
      params.failingSince,
      '"disabled": false',
    ]) {
      expect(text).toContain(fact);
      expect(html).toContain(escapeHtml(fact));
    }
  });

  test('omits unknown values', () => {
    const { text } = renderEmail(
      renderTemplate('webhook-endpoint-disabled', { ...params, failingSince: null }),
      'https://mail.example',
    );
    expect(text).not.toContain('Failing since');
  });
});

describe('text from customers', () => {
  test.each([
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    '</td></tr></table><h1>Your account',
    '&lt;b&gt;',
    "' onmouseover='x",
  ])('is escaped: %s', (hostile) => {
    const benign = renderEmail(
      renderTemplate('webhook-endpoint-disabled', { ...params, reason: 'x' }),
      'https://mail.example',
    );
    const { html, text } = renderEmail(
      renderTemplate('webhook-endpoint-disabled', { ...params, reason: hostile }),
      'https://mail.example',
    );
    expect(elements(html)).toEqual(elements(benign.html));
    expect(html).not.toContain(`>${hostile}<`);
    expect(text).toContain(hostile);
  });

  test('never creates an element, a second header line or an invisible character', () => {
    const benign = elements(
      renderEmail({ subject: 'x', body: ['x', [['x', 'x']]] }, 'https://mail.example').html,
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (hostile) => {
        const { subject, text, html } = renderEmail(
          {
            subject: hostile,
            body: [hostile, [[hostile, hostile]]],
          },
          'https://mail.example',
        );
        expect(elements(html)).toEqual(benign);
        expect(subject).toMatch(/^\P{Cc}*$/u);
        expect(`${text}${html}`).not.toMatch(/[\u202a-\u202e\u2066-\u2069]|(?!\n)\p{Cc}/u);
      }),
    );
  });

  test('cannot forge another table row', () => {
    const { text } = renderEmail(
      renderTemplate('webhook-endpoint-disabled', { ...params, reason: 'x\r\nEndpoint: whe_other' }),
      'https://mail.example',
    );
    expect(text.split('\n')).not.toContain('Endpoint: whe_other');
  });
});
