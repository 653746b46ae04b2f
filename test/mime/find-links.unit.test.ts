import { describe, expect, test } from '@jest/globals';
import { readAnchors } from '../../domain/mime/links/anchors.ts';
import { findLinks } from '../../domain/mime/links/find-links.ts';
import { expectComputedWithin } from '../support/expect-within.ts';

interface Given {
  html?: string;
  text?: string;
  subject?: string;
  from?: string;
}

const find = ({ html, text = '', subject = '', from }: Given) =>
  findLinks({ subject, from, text, anchors: html === undefined ? [] : readAnchors(html) });
const link = (words: string, url = 'https://app.example/x') =>
  `<p>Hello <a href="${url}">${words}</a> bye</p>`;
const kinds = (given: Given) => find(given).allLinks.map(({ kind }) => kind);

describe('the kind of a link, by its words:', () => {
  test.each([
    ['Verify your email', 'verify'],
    ['Verify email address', 'verify'],
    ['Confirm my account', 'verify'],
    ['Confirm your subscription', 'verify'],
    ['Activate account', 'verify'],
    ['Complete registration', 'verify'],
    ['E-Mail-Adresse bestätigen', 'verify'],
    ['Confirmer mon adresse e-mail', 'verify'],
    ['Verifica tu correo', 'verify'],
    ['Подтвердить адрес', 'verify'],
    ['验证邮箱', 'verify'],
    ['メールアドレスを確認する', 'verify'],
    ['이메일 인증하기', 'verify'],
    ['Reset password', 'reset'],
    ['Reset my password', 'reset'],
    ['Choose a new password', 'reset'],
    ['Set your password', 'reset'],
    ['Passwort zurücksetzen', 'reset'],
    ['Réinitialiser le mot de passe', 'reset'],
    ['Restablecer contraseña', 'reset'],
    ['重置密码', 'reset'],
    ['パスワードを再設定', 'reset'],
    ['Sign in', 'sign_in'],
    ['Log in to Acme', 'sign_in'],
    ['Sign in with this magic link', 'sign_in'],
    ['Jetzt anmelden', 'sign_in'],
    ['Se connecter', 'sign_in'],
    ['ログイン', 'sign_in'],
    ['Accept invitation', 'invite'],
    ['Join the Acme team', 'invite'],
    ['Unsubscribe', 'unsubscribe'],
    ['Manage email preferences', 'unsubscribe'],
    ['Newsletter abbestellen', 'unsubscribe'],
    ['Se désabonner', 'unsubscribe'],
    ['退订', 'unsubscribe'],
    ['Add to Google Calendar', 'calendar'],
    ['Track your order', 'other'],
    ['Confirm your order', 'other'],
    ['Confirm appointment', 'other'],
    ['View in browser', 'other'],
    ['Shop now', 'other'],
    ['Activate offer', 'other'],
    ['Read the blog', 'other'],
  ])('%s', (words, kind) => {
    expect(kinds({ html: link(words) })).toEqual([kind]);
  });
});

describe('the kind of a link, by more than its words:', () => {
  test.each([
    ['its path', link('Get started', 'https://app.example/verify-email?token=a'), 'verify'],
    ['a path of a reset', link('Continue', 'https://app.example/users/password/reset/abc'), 'reset'],
    ['a path of a magic link', link('Go', 'https://app.example/magic-link?t=a'), 'sign_in'],
    ['an invitation', link('View', 'https://app.example/invitations/abc'), 'invite'],
    ['a calendar file', link('Details', 'https://app.example/event.ics'), 'calendar'],
    [
      'the sentence before it',
      '<p>To reset your password, click <a href="https://t.example/c/9">here</a>.</p>',
      'reset',
    ],
    [
      'the paragraph before it',
      '<p>Please verify your email address.</p><p><a href="https://t.example/c/9">https://t.example/c/9</a></p>',
      'verify',
    ],
    [
      'an unsubscription after a sentence',
      '<p>To unsubscribe, click <a href="https://t.example/c/9">here</a></p>',
      'unsubscribe',
    ],
  ])('%s', (_what, html, kind) => {
    expect(kinds({ html })).toEqual([kind]);
  });

  test('the subject, for a link with a token and without words of its own', () => {
    const given = (path: string) => ({
      html: link('Click here', `https://t.example/${path}`),
      subject: 'Verify your email address',
    });
    expect(kinds(given('ls/click/u001aBcDeFgHiJkLmNoP'))).toEqual(['verify']);
    expect(kinds(given('help'))).toEqual(['other']);
  });

  test('words that say what it is come before the address', () => {
    expect(kinds({ html: link('Unsubscribe', 'https://app.example/verify-email') })).toEqual(['unsubscribe']);
  });
});

describe('a link shows', () => {
  test('its host in ASCII, also if the URL names another one before the @', () => {
    const { allLinks } = find({
      html: `${link('a', 'https://bank.example@evil.test/login')}${link('b', 'https://BÜCHER.example/')}`,
    });
    expect(allLinks.map(({ host }) => host)).toEqual(['evil.test', 'xn--bcher-kva.example']);
  });

  test.each([
    ['https://app.acme.com/x', 'Ada <no-reply@mail.acme.com>', true],
    ['https://acme.com/x', 'no-reply@acme.com', true],
    ['https://acme.co.uk/x', 'no-reply@shop.co.uk', false],
    ['https://acme.com.evil.net/x', 'no-reply@acme.com', false],
    ['https://one.github.io/x', 'no-reply@two.github.io', false],
    ['https://sendgrid.net/x', 'no-reply@acme.com', false],
  ])('whether %s belongs to %s: %s', (url, from, expected) => {
    const address = from.replace(/^.*<|>$/g, '');
    expect(find({ html: link('x', url), from: address }).allLinks[0]?.matchesSender).toBe(expected);
  });

  test('no owner without an author', () => {
    expect(find({ html: link('x') }).allLinks[0]?.matchesSender).toBe(false);
  });
});

describe('links are read from', () => {
  test('plain text, with the line before each', () => {
    const text =
      'Hi,\n\nVerify your email address:\nhttps://app.example/v/1.\n\nDocs (https://docs.example/a)\n';
    expect(find({ text }).allLinks).toMatchObject([
      { url: 'https://app.example/v/1', kind: 'verify', text: 'Verify your email address:' },
      { url: 'https://docs.example/a', kind: 'other', text: 'Docs' },
    ]);
  });

  test('visible words only once for a target', () => {
    const { allLinks } = find({ html: `${link('')}${link('Verify your email')}${link('here')}` });
    expect(allLinks).toMatchObject([{ kind: 'verify', text: 'Verify your email' }]);
  });

  test('http and https alone', () => {
    const html = [
      'mailto:a@b.example',
      'javascript:alert(1)',
      'tel:1',
      '#top',
      '/relative',
      'data:text/html,x',
      'ftp://a.example',
    ]
      .map((url) => link('Verify your email', url))
      .join('');
    expect(find({ html }).allLinks).toEqual([]);
  });

  test('what is not quoted', () => {
    const marked =
      '<p><a href="https://a.example/1">a</a></p><div>\ue006</div><a href="https://a.example/2">Reset password</a><div>\ue004</div><a href="https://a.example/3">c</a><div>\ue005</div><a href="https://a.example/4">d</a>';
    const urls = (text: string) => find({ html: marked, text }).allLinks.map(({ url }) => url.slice(-1));
    expect(urls('')).toEqual(['1', '3']);
    // A forwarded message, which the text shows.
    expect(urls('Reset password <https://a.example/2>')).toEqual(['1', '2', '3']);
  });
});

describe('the links that an agent may need', () => {
  const html = [
    link('Shop', 'https://a.example/0'),
    link('Unsubscribe', 'https://a.example/1'),
    link('Add to calendar', 'https://a.example/2'),
    link('Accept invitation', 'https://a.example/3'),
    link('Sign in', 'https://a.example/4'),
    link('Verify your email', 'https://a.example/5'),
    link('Reset password', 'https://a.example/6'),
  ].join('');

  test('are at most five, the most important first, and never others', () => {
    expect(find({ html }).links.map(({ kind }) => kind)).toEqual([
      'verify',
      'reset',
      'sign_in',
      'invite',
      'calendar',
    ]);
    expect(find({ html }).allLinks).toHaveLength(7);
  });
});

describe('many links are bounded:', () => {
  test('10,000 links', () => {
    const html = Array.from(
      { length: 10_000 },
      (_, at) => `<a href="https://a.example/${at}">${at}</a>`,
    ).join('');
    const { links, allLinks, hasMoreLinks } = expectComputedWithin(3_000, () =>
      find({ html: `${html}${link('Verify your email')}` }),
    );
    expect({ links, count: allLinks.length, hasMoreLinks }).toEqual({
      links: [],
      count: 500,
      hasMoreLinks: true,
    });
  });

  test('an important link behind many others is found', () => {
    const html = Array.from({ length: 2_000 }, (_, at) => `<a href="https://a.example/${at}">${at}</a>`).join(
      '',
    );
    expect(find({ html: `${html}${link('Verify your email')}` }).links).toMatchObject([{ kind: 'verify' }]);
  });

  test('long URLs', () => {
    const long = (length: number) => `https://a.example/${'x'.repeat(length)}`;
    expect(find({ html: link('a', long(9_000)) }).allLinks).toEqual([]);
    const html = Array.from({ length: 100 }, (_, at) => link('a', `${long(8_000)}${at}`)).join('');
    const { allLinks, hasMoreLinks } = find({ html });
    expect(JSON.stringify(allLinks).length).toBeLessThan(300_000);
    expect(hasMoreLinks).toBe(true);
  });

  test.each([
    ['text', { text: `https://a.example/${'x'.repeat(5_000_000)}` }],
    ['HTML', { html: `<a href="https://a.example/">${'x '.repeat(2_500_000)}</a>` }],
  ])('a line of 5 MB in %s', (_what, body) => {
    expectComputedWithin(3_000, () => find(body));
  });
});
