import { advanceClock, attemptPayment, completeCheckout, listMeteredLines } from './billing-cycle.ts';
import type { FormBody } from './form-body.ts';
import { textOf } from './form-body.ts';
import type { Card, Ledger, Subscription } from './ledger.ts';
import { emit } from './present.ts';

export interface PageAnswer {
  html?: string;
  redirectTo?: string;
}

const CARDS: Record<Card, string> = {
  works: 'Card that works',
  declined: 'Card that is declined',
  bank: 'Card that the bank wants confirmed',
  slow: 'Debit that arrives later',
};

/** Pages in place of Stripe's: checkout, portal and invoice, with a clock that moves by days. */
export function answerPage(
  ledger: Ledger,
  { method, path, query, body }: { method: string; path: string; query: URLSearchParams; body: FormBody },
): PageAnswer | undefined {
  const [, kind, id = ''] = path.split('/');
  if (kind === 'checkout') return checkout(ledger, { method, id, body });
  if (kind === 'portal')
    return portal(ledger, { method, id, body, returnUrl: query.get('return_url') ?? '' });
  if (kind === 'invoices') {
    const invoice = ledger.invoices.get(id);
    return invoice && { redirectTo: `/portal/${invoice.customer}` };
  }
  return undefined;
}

function checkout(
  ledger: Ledger,
  { method, id, body }: { method: string; id: string; body: FormBody },
): PageAnswer | undefined {
  const session = ledger.sessions.get(id);
  if (!session) return undefined;
  if (method !== 'POST' || session.status !== 'open')
    return {
      html: page('Checkout', [
        `<p>${escapeHtml(session.price)}: ${session.status}</p>`,
        session.status === 'open' ? form(`<p>${cardSelect()}</p><button>Pay</button>`) : '',
        `<p><a href="${escapeHtml(session.cancel_url)}">Back</a></p>`,
      ]),
    };
  setCard(ledger, session.customer, body);
  if (completeCheckout(ledger, session)) return { redirectTo: session.success_url };
  return {
    html: page('Checkout', [
      '<p role="alert">The card was declined.</p>',
      form(`${cardSelect()}<button>Pay</button>`),
    ]),
  };
}

function portal(
  ledger: Ledger,
  { method, id, body, returnUrl }: { method: string; id: string; body: FormBody; returnUrl: string },
): PageAnswer | undefined {
  if (!ledger.customers.has(id)) return undefined;
  if (method === 'POST') act(ledger, id, body);
  const invoices = [...ledger.invoices.values()].filter(({ customer }) => customer === id);
  const rows = invoices.map(
    (invoice) =>
      `<li>${invoice.id}: ${invoice.amount_due / 100} ${invoice.currency}, ${invoice.status}${
        invoice.status === 'open' ? form(`<button name="pay" value="${invoice.id}">Pay</button>`) : ''
      }</li>`,
  );
  const subscriptions = [...ledger.subscriptions.values()].filter(({ customer }) => customer === id);
  return {
    html: page('Customer portal', [
      `<p>Clock: ${new Date(ledger.now * 1_000).toISOString()}</p>`,
      `<ul>${subscriptions.map((subscription) => describeSubscription(ledger, subscription)).join('')}</ul>`,
      form(`${cardSelect()}<button>Use this card</button>`),
      `<ul>${rows.join('')}</ul>`,
      form('<label>Days <input name="days" value="30" size="3"></label><button>Move the clock</button>'),
      returnUrl ? `<p><a href="${escapeHtml(returnUrl)}">Back</a></p>` : '',
    ]),
  };
}

function describeSubscription(ledger: Ledger, subscription: Subscription): string {
  const { id, price, status, period } = subscription;
  const used = listMeteredLines(ledger, subscription, period)
    .map(({ description, amount }) => `, next invoice: ${description} = ${amount / 100}`)
    .join('');
  return `<li>${id}: ${escapeHtml(price)}, ${status}${escapeHtml(used)}</li>`;
}

function act(ledger: Ledger, customerId: string, body: FormBody): void {
  setCard(ledger, customerId, body);
  const invoice = ledger.invoices.get(textOf(body.pay) ?? '');
  if (invoice?.customer === customerId && invoice.status === 'open') attemptPayment(ledger, invoice);
  const days = Number(textOf(body.days) ?? 0);
  if (days > 0 && days <= 3_650) {
    advanceClock(ledger, days * 86_400);
    // Nothing may have come due at Stripe, but a reminder or a suspension may be.
    const customer = ledger.customers.get(customerId);
    if (customer) emit(ledger, 'customer.updated', customer);
  }
}

function setCard(ledger: Ledger, customerId: string, body: FormBody): void {
  const card = textOf(body.card);
  const customer = ledger.customers.get(customerId);
  if (customer && card !== undefined && Object.hasOwn(CARDS, card)) customer.card = card as Card;
}

const form = (content: string) => `<form method="post">${content}</form>`;
const cardSelect = () =>
  `<label>Card <select name="card">${Object.entries(CARDS)
    .map(([value, label]) => `<option value="${value}">${label}</option>`)
    .join('')}</select></label>`;

const page = (title: string, parts: string[]) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><body><h1>${title}</h1><p>A stand-in for Stripe. No money moves.</p>${parts.join('')}</body></html>`;

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
