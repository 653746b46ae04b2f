import { mail } from './inbound-mail.ts';

const ITEMS = [
  'Trail running shoes, blue',
  'Merino hiking socks',
  'Rain jacket with hood',
  'Steel water bottle, 0.7 l',
  'Head torch, 400 lumen',
];
const token = (at: number) => `u001.${'aBcDeFgHiJkLmNoPqRsTuVwXyZ012345'.repeat(5)}${at}`;
const track = (at: number) =>
  `https://click.shop.example/ls/click?upn=${token(at)}&amp;utm_source=newsletter&amp;utm_medium=email`;

/** An ordinary mail of a shop: 20 items in nested tables, pictures, a preheader, and 25 links with tracking. */
export function buildShopMail(): string {
  const rows = Array.from({ length: 20 }, (_, at) => {
    const name = `${ITEMS[at % ITEMS.length]} (${at + 1})`;
    return `<tr><td><a href="${track(at)}"><img src="https://cdn.shop.example/i/${at}.jpg" alt="${name}" width="120" height="120"></a></td><td><table><tr><td style="font-size:14px"><b>${name}</b><br>Quantity 1 &middot; $${(19.9 + at).toFixed(2)}</td></tr></table></td></tr>`;
  });
  const footer = ['Your account', 'Help', 'Returns', 'Stores', 'Unsubscribe'].map(
    (words, at) => `<a href="${track(100 + at)}">${words}</a>`,
  );
  const html = `<html><head><style>td{color:#333}</style></head><body><div style="display:none">Your parcel is on its way${'&zwnj;&nbsp;'.repeat(60)}</div><table width="600"><tr><td><h1>Your order has shipped</h1><p>Hi Ada, order 4711-2026 left our warehouse. It should arrive on Friday.</p><table>${rows.join('')}</table><p>Total $ 590.00</p><p>${footer.join(' | ')}</p><p>Shop Example Inc, 548 Market Street, San Francisco, CA 94104</p><img src="https://click.shop.example/o.gif" width="1" height="1" alt=""></td></tr></table></body></html>`;
  return mail(
    { From: 'Shop <orders@shop.example>', Subject: 'Your order has shipped', 'Content-Type': 'text/html' },
    html.replace(/<tr>/g, '\r\n<tr>'),
  );
}

/** Four bytes of JSON are about a token. */
export const countTokens = (answer: unknown): number =>
  Math.ceil(Buffer.byteLength(JSON.stringify(answer)) / 4);
