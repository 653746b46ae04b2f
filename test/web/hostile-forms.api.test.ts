import { expect, test } from '@jest/globals';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient, type Fields } from '../support/page-client.ts';
import { setPolicies } from '../support/policies.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';

const app = useTestApp();

async function arrange() {
  const organization = await createOrganization(app.worker);
  const { organizationId, token, ownerId } = organization;
  const inbox = await createInbox(app.worker, organization);
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, ownerId)).token);
  const make = async (path: string) =>
    (
      await app.call(path, { method: 'POST', token, body: { to: ['ada@people.example'], text_body: 'x' } })
    ).json<{ id: string }>().id;
  const draftId = await make(`/inboxes/${inbox.id}/drafts`);
  await setPolicies(app.worker, organizationId, { require_send_approval: 'all' });
  const waitingId = await make(`/inboxes/${inbox.id}/messages`);
  return { browser, draftId, waitingId };
}

const FILTERS = [
  '/drafts?status=',
  '/drafts?inbox_id=',
  '/drafts?cursor=',
  '/approvals?inbox_id=',
  '/approvals?cursor=',
  '/domains?cursor=',
  '/reputation?range=',
  '/reputation/suppressions?search=',
  '/reputation/suppressions?origin=',
  '/reputation/lists?list=',
  '/reputation/refusals?from=',
  '/reputation/refusals?reason=',
];

test.each(['a\u0000b@people.example', `'"><script>alert(1)</script>`, 'x'.repeat(5_000)])(
  'hostile text in forms and filters is refused or kept, never an error of the service: %j',
  async (value) => {
    const { browser, draftId, waitingId } = await arrange();
    const expectHandled = (what: string, { statusCode, body }: { statusCode: number; body: string }) => {
      expect([what, statusCode < 500]).toEqual([what, true]);
      expect([what, body.includes('<script>alert')]).toEqual([what, false]);
    };
    for (const path of FILTERS) expectHandled(path, await browser.open(path + encodeURIComponent(value)));
    const submit = async (page: string, action: string, fields: Fields) => {
      await browser.open(page);
      expectHandled(
        `${action} ${JSON.stringify(fields).slice(0, 100)}`,
        await browser.submit(action, fields),
      );
    };
    const draft = { to: '', cc: '', bcc: '', subject: '', text_body: '', send_at: '', intent: 'save' };
    for (const field of ['to', 'subject', 'text_body', 'send_at'])
      await submit(`/drafts/${draftId}`, `/drafts/${draftId}`, { ...draft, [field]: value });
    const decision = { decision: 'approve', version: '999' };
    await submit(`/approvals/${waitingId}`, `/approvals/${waitingId}`, { ...decision, note: value });
    await submit('/domains', '/domains', { domain_name: value });
    await submit('/reputation/suppressions', '/reputation/suppressions', { email: value });
    const entry = { entry: 'e@x.example', applies_to: 'inbox', inbox: 'x' };
    for (const field of ['list', 'entry', 'applies_to', 'inbox'])
      await submit('/reputation/lists', '/reputation/lists', {
        list: 'send-block',
        ...entry,
        [field]: value,
      });
  },
);
