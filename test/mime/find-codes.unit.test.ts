import { describe, expect, test } from '@jest/globals';
import { findCodes } from '../../domain/mime/codes/find-codes.ts';
import { expectComputedWithin } from '../support/expect-within.ts';

const find = (text: string, subject = '', field?: string) => findCodes({ subject, text, field });
const values = (text: string, subject = '') => find(text, subject).map(({ value }) => value);

describe('finds the code:', () => {
  test.each([
    ['after a colon', 'Your verification code is: 482913', '482913'],
    ['after the verb', 'Your Acme security code is 482913.', '482913'],
    ['before the words', '482913 is your Acme verification code.', '482913'],
    ['in an instruction', 'Use 482913 as your one-time code.', '482913'],
    ['to enter', 'Enter 482913 as your verification code.', '482913'],
    [
      'alone below a sentence',
      'Here is your verification code:\n\n482913\n\nIt expires in 10 minutes.',
      '482913',
    ],
    [
      'alone, two lines below',
      'Hi Ada,\nTo finish signing in, enter this verification code.\nIt is valid for ten minutes.\n\n482913\n\nThe Acme team',
      '482913',
    ],
    ['alone above the sentence', '482913\nis your verification code', '482913'],
    [
      'alone, with the words only in the subject',
      'Hello Ada\n\n482913\n\nThanks',
      '482913',
      'Your sign-in code',
    ],
    ['of four digits', 'Your login code: 7204', '7204'],
    ['of eight digits', 'Your login code: 72045513', '72045513'],
    ['that looks like a year, beside its name', 'Your verification code is 2024', '2024'],
    ['in two groups', 'Your verification code is 482 913', '482913'],
    ['in three groups', 'Your verification code:\n12 34 56', '123456'],
    ['in groups with a hyphen', 'Your verification code is 482-913', '482913'],
    ['digit by digit', 'Verification code:\n4 8 2 9 1 3', '482913'],
    ['a digit on each line', 'Your verification code:\n4\n8\n2\n9\n1\n3\nBye', '482913'],
    ['with a fixed prefix', 'G-482913 is your Google verification code.', '482913'],
    ['of letters and digits', 'Your sign-in code is: X7K9QP', 'X7K9QP'],
    ['of letters and digits, alone', 'Enter this verification code to continue:\n\nx7k9qp', 'x7k9qp'],
    [
      'in groups of letters',
      'Your confirmation code for signing in to Slack is below.\n\nABC-DEF',
      'ABC-DEF',
    ],
    ['in groups of letters and digits', 'Enter this device code: WDJB-4MHT', 'WDJB-4MHT', 'Sign in to Acme'],
    ['of letters alone', 'Your one-time passcode:\nQWHXKP', 'QWHXKP'],
    ['with stars around it', 'Your verification code is **482913**', '482913'],
    ['in quotation marks', 'Your verification code is "482913".', '482913'],
    [
      'where only "code" is said, in mail about signing in',
      'Log in to Acme with this code: 482913',
      '482913',
    ],
    [
      'of syllables',
      'Or, copy and paste this temporary login code:\n\nsparo-ndigo-amurt-secan',
      'sparo-ndigo-amurt-secan',
    ],
    ['that is only said to be yours', 'Your code is 123-456. Valid for 5 mins.', '123456'],
    ['of a brand', '482913 is your Acme code. Do not share it.', '482913'],
    ['a PIN', 'Your PIN to sign in is 4829', '4829'],
    ['an OTP', 'OTP for your login is 482913. Do not share it.', '482913'],
    ['in the subject', 'Hello', '482913', '482913 is your Acme verification code'],
    [
      'in an email that also has a year',
      'Your code is 482913\n\n© 2024 Acme Inc, 94107 San Francisco',
      '482913',
      'Sign in',
    ],
    [
      'in an email with a telephone number and an address',
      'Your verification code is 482913.\nCall 555-123-4567.\nAcme, 100 Main Street, San Francisco, CA 94107',
      '482913',
    ],
    [
      'in an email with an amount',
      'Confirm your payment of $1234.00 with the security code 482913.',
      '482913',
    ],
  ])('%s', (_what, text, expected, subject = '') => {
    expect(values(text, subject)).toEqual([expected]);
  });
});

describe('finds the code in', () => {
  test.each([
    ['German', 'Ihr Bestätigungscode lautet: 482913', '482913'],
    ['German, alone', 'Ihr Einmalpasswort für die Anmeldung:\n482913', '482913'],
    ['French', 'Votre code de vérification est 482913', '482913'],
    ['Spanish', 'Tu código de verificación es 482913', '482913'],
    ['Spanish, plainly', 'Usa este código para iniciar sesión: 482913', '482913'],
    ['Portuguese', 'Seu código de verificação é 482913', '482913'],
    ['Italian', 'Il tuo codice di verifica è 482913', '482913'],
    ['Dutch', 'Je verificatiecode is 482913', '482913'],
    ['Polish', 'Twój kod weryfikacyjny to 482913', '482913'],
    ['Czech', 'Váš ověřovací kód je 482913', '482913'],
    ['Swedish', 'Din verifieringskod är 482913', '482913'],
    ['Norwegian', 'Din bekreftelseskode er 482913', '482913'],
    ['Finnish', 'Vahvistuskoodisi on 482913', '482913'],
    ['Turkish', 'Doğrulama kodunuz: 482913', '482913'],
    ['Russian', 'Ваш код подтверждения: 482913', '482913'],
    ['Ukrainian', 'Ваш код підтвердження: 482913', '482913'],
    ['Greek', 'Ο κωδικός επαλήθευσης είναι 482913', '482913'],
    ['Vietnamese', 'Mã xác minh của bạn là 482913', '482913'],
    ['Indonesian', 'Kode verifikasi Anda adalah 482913', '482913'],
    ['Chinese, without spaces', '【示例】您的验证码是482913，请于5分钟内使用。', '482913'],
    ['Chinese, the code first', '482913是您的验证码', '482913'],
    ['traditional Chinese', '您的驗證碼為：482913', '482913'],
    ['Japanese, without spaces', '認証コードは482913です。有効期限は10分です。', '482913'],
    ['Japanese, alone', '以下の確認コードを入力してください。\n482913', '482913'],
    ['Japanese, in full-width digits', '認証コード：４８２９１３', '482913'],
    ['Korean', '인증번호는 482913입니다.', '482913'],
    ['Thai, without spaces', 'รหัสยืนยันของคุณคือ482913', '482913'],
    ['Thai digits', 'รหัส OTP ของคุณคือ ๔๘๒๙๑๓', '482913'],
    ['Arabic', 'رمز التحقق الخاص بك هو 482913', '482913'],
    ['Arabic digits', 'رمز التحقق: ٤٨٢٩١٣', '482913'],
    ['Persian digits', 'کد تایید شما: ۴۸۲۹۱۳', '482913'],
    ['Hebrew', 'קוד האימות שלך: 482913', '482913'],
    ['Slovak, in a compound', 'Prihlasovací kód je uvedený nižšie.\n\n482913', '482913'],
    ['Danish, in a compound', 'Din adgangskode-nulstillingskode:\n482913', '482913'],
    ['Slovenian', 'Koda za ponastavitev gesla:\n482913', '482913'],
    ['Georgian', 'თქვენი შესვლის კოდი:\n482913', '482913'],
    ['Uzbek', 'Parolni tiklash kodi:\n482913', '482913'],
    ['Hindi', 'आपका सत्यापन कोड ४८२९१३ है', '482913'],
  ])('%s', (_language, text, expected) => {
    expect(values(text)).toEqual([expected]);
  });
});

describe('codes that are bound to an origin come first:', () => {
  test('the last line', () => {
    const [first, ...others] = find('Your verification code is 482913.\n\n@login.example.com #482913');
    expect(others).toEqual([]);
    expect(first).toEqual({
      value: '482913',
      raw: '482913',
      confidence: 'certain',
      context: '@login.example.com #482913',
      originDomain: 'login.example.com',
    });
  });

  test('the last line of an embedded frame', () => {
    expect(find('Sign in.\n@shop.example #AB12CD @pay.example')).toMatchObject([
      { value: 'AB12CD', originDomain: 'shop.example' },
    ]);
  });

  test('the header field', () => {
    expect(find('Hello', '', 'code=482913; origin=example.com')).toMatchObject([
      { value: '482913', confidence: 'certain', originDomain: 'example.com' },
    ]);
    expect(find('Your verification code is 111222', '', 'origin=example.com;code=482913')).toMatchObject([
      { value: '482913' },
      { value: '111222', originDomain: null },
    ]);
  });

  test.each([
    ['no domain', 'code=482913'],
    ['no code', 'origin=example.com'],
    ['markup', 'code=<b>1; origin=example.com'],
    ['an address for the origin', 'code=482913; origin=https://example.com/'],
    ['empty', ''],
  ])('not a field with %s', (_what, field) => {
    expect(find('Hello', '', field)).toEqual([]);
  });

  test.each(['Ask @ada.example #123456 about it', '@ada #123456', '@example.com #12', '@example.com 482913'])(
    'not the line %j',
    (line) => {
      expect(find(`Hello\n${line}`)).toEqual([]);
    },
  );
});

describe('finds no code in', () => {
  test.each([
    ['a text without a word for it', 'See you at 1530 in room 4829. 482913'],
    ['an order number', 'Your order 482913 has shipped.\nOrder number: 482913'],
    [
      'an order number in mail about signing in',
      'Log in to see order 482913. Your code is on the next page.',
    ],
    [
      'an order number on its own line',
      'Use your code at the door.\nOrder number:\n482913',
      'Sign in at the desk',
    ],
    ['a year', 'We verify every code since 2019. © 2024 Acme'],
    ['a price', 'Your security code plan costs $1299 or 1299 EUR a year. Or €1299.'],
    ['a decimal', 'Your verification code costs 1299.50'],
    ['a telephone number', 'Questions about your verification code? Call 555-123-4567 or +1 800 555 1234.'],
    ['a colour', 'Use the code #336699 for the sign-in button.'],
    ['an address', 'Lost your security code? Write to Acme, 548 Market St, San Francisco, CA 94104.'],
    ['a German address', 'Anmeldung\nAcme GmbH, Hauptstraße 12, 10115 Berlin'],
    ['a tracking number', 'Sign in to track it. Tracking code: 940011189922'],
    ['a tracking code of letters', 'Log in to track your parcel.\nTracking code: RB482913'],
    ['a ticket id', 'Sign in to answer. [Ticket #482913] Reference code: 482913'],
    ['a coupon', 'Log in and use code SAVE2024 for 20% off.'],
    ['a coupon on its own line', 'Log in now and save 20% with this promo code:\nSPRING24'],
    ['a postal code', 'Sign in to change your postal code 10115.'],
    ['a country code', 'Log in with your phone: country code 0049'],
    ['an error', 'Login failed with error code 50058.'],
    ['a booking', 'Log in for check-in. Booking code: X7K9QP'],
    ['an account', 'Your login code was sent to the card ending in 4829.'],
    ['a masked account', 'Your login code was sent to ****4829.'],
    ['source code', 'Please sign in to read the source code 482913.'],
    ['a date', 'Your verification code was sent on 2024-11-23 and 23.11.2024 and 11-23-24.'],
    ['a duration', 'Your verification code expires in 1440 minutes.'],
    ['a list of recovery codes', 'Your recovery codes to log in:\n11112222\n33334444\n55556666\n77778888'],
    ['a URL', 'Your verification code: https://example.com/verify/482913?code=739201'],
    ['a mail address', 'Your verification code was sent to ada482913@example.com'],
    ['words in capitals', 'Your verification code: PLEASE LOGIN'],
    ['a sentence about codes', 'CODE REVIEW: please sign in and look at PROJ-4829.'],
    ['a commit', 'Log in to see the code change 4f3a9c1 by Ada.'],
    ['a number of people', 'Verification code used by 5000 people'],
    ['a time', 'Log in: the code freeze begins at 1530.'],
    ['a word with hyphens', 'Log in to read about state-of-the-art code reviews.'],
    ['a coupon that is yours', 'Your code is SAVE2024 for 20% off.'],
    [
      'a booking that is called a confirmation',
      'Log in to check in.\nConfirmation code\nHMABCD1234',
      'Your reservation',
    ],
    ['a flight', 'Sign in to see your flight. Confirmation code: X7K9QP'],
    ['a PIN code, which is an address in India', 'Log in to pay. PIN code 560001 Bangalore'],
    ['a meeting', 'Sign in to Zoom. Meeting code: 482913. Passcode: 771234', 'Zoom meeting'],
    ['a network', 'The wifi password code is 48291377; login at the desk'],
    ['a name', 'We noticed a sign-in. Code name: 4829'],
    ['a count', 'Security code review found 1234 issues in 5678 files'],
    ['a delivery', 'Delivery code: 4829. Give it to the courier.'],
    ['an empty text', ''],
  ])('%s', (_what, text, subject = '') => {
    expect(values(text, subject)).toEqual([]);
  });
});

test('a context is the line that names the code, and short', () => {
  const [code] = find(`Hello\nHere is your verification code, ${'as you asked '.repeat(30)}:\n482913`);
  expect(code?.context).toMatch(/^Here is your verification code/);
  expect(code?.context.length).toBeLessThanOrEqual(160);
  expect(code).toMatchObject({ confidence: 'high', raw: '482913', originDomain: null });
});

test('the text of a code stays as it is written', () => {
  expect(find('Your verification code:\n482 913')).toMatchObject([{ value: '482913', raw: '482 913' }]);
});

test('a number that is farther away is less certain', () => {
  expect(find('The verification code that you asked for this morning was 482913')).toMatchObject([
    { value: '482913', confidence: 'medium' },
  ]);
});

test('reads the start of a text without an end', () => {
  const text = `Your verification code is 482913 ${'code 123456 '.repeat(500_000)}`;
  expectComputedWithin(2_000, () => findCodes({ subject: text, text }));
});
