import { Readable } from 'node:stream';
import { afterAll, expect, test } from '@jest/globals';
import { createDraftService } from '../../domain/drafts/draft.service.ts';
import { createCredentialService } from '../../domain/inboxes/credential.service.ts';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createSubmissionService } from '../../domain/outbound/submission.service.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { AppError } from '../../platform/errors.ts';
import { mail, sharedParserPool } from '../support/inbound-mail.ts';
import {
  createMemoryStorage,
  noApprovals,
  TEST_APPROVAL_MS,
  testUnsubscribeLinks,
} from '../support/mail-services.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';

const app = useTestApp();
afterAll(() => sharedParserPool().close());

const ADA = 'ada@people.example';
const PATH = `/suppressions/${encodeURIComponent(ADA)}`;

interface World {
  organization: TestOrganization;
  inboxes: Record<'own' | 'sibling' | 'sandbox', Inbox>;
  /** Keys by binding; `environment` and `inbox` are those of the inbox `own`. */
  keys: Record<Binding, string>;
}
type Binding = 'organization' | 'environment' | 'inbox';
type InboxName = keyof World['inboxes'];

async function arrange(): Promise<World> {
  const organization = await createOrganization(app.worker);
  const { organizationId, productionEnvironmentId: environmentId, sandboxEnvironmentId } = organization;
  const own = await createInbox(app.worker, organization);
  const sibling = await createInbox(app.worker, organization);
  const sandbox = await createInbox(app.worker, organization, { environmentId: sandboxEnvironmentId });
  const keyOf = async (binding: object) =>
    (await createKey(app.worker, { organizationId, ...binding })).token;
  return {
    organization,
    inboxes: { own, sibling, sandbox },
    keys: {
      organization: organization.token,
      environment: await keyOf({ environmentId }),
      inbox: await keyOf({ environmentId, inboxId: own.id }),
    },
  };
}

const suppress = (token: string) =>
  app.call('/suppressions', { method: 'POST', token, body: { email: ADA } });
const listed = async (token: string) =>
  (await app.call('/suppressions', { token })).json<{ data: { scope: string }[] }>().data;

const post = ({ organization }: World, inbox: Inbox, path: string, body: object) =>
  app.call(path, {
    method: 'POST',
    token: organization.token,
    headers: { 'x-env-id': inbox.environmentId },
    body,
  });
const send = async (world: World, inbox: Inbox, email: string) =>
  (await post(world, inbox, `/inboxes/${inbox.id}/messages`, { to: [{ email }], text_body: 'Text' })).json<{
    id: string;
    code?: string;
  }>();

const { outbox } = recordingOutbox();
const events = createWebhookEvents({ outbox });

async function submit({ organization }: World, inbox: Inbox): Promise<string> {
  const credentials = createCredentialService({ database: app.worker });
  const { password } = await credentials.rotate(testScope(organization, inbox), inbox.id);
  const submissions = createSubmissionService({
    drafts: noApprovals,
    database: app.worker,
    storage: createMemoryStorage(new Map()),
    outbox,
    events,
    credentials,
    attachments: { storeUpload: () => Promise.reject(new Error('The message has no files')) },
    parserPool: sharedParserPool(),
  });
  const submitter = await submissions.authenticate(inbox.email, password);
  if (!submitter) throw new Error('The password does not work');
  const raw = Readable.from([mail({ From: inbox.email, To: ADA })]);
  return submissions.submit(submitter, { recipients: [ADA], raw });
}

/**
 * Every way to send to Ada: what it prepares before she is suppressed, and the error code of its attempt afterwards,
 * undefined if she is sent to.
 */
const WAYS: Record<string, (world: World, inbox: Inbox) => Promise<() => Promise<string | undefined>>> = {
  send: async (world, inbox) => async () => (await send(world, inbox, ADA)).code,
  // A reply to a message of one's own goes to its recipients.
  reply: async (world, inbox) => {
    const { id } = await send(world, inbox, ADA);
    return async () => (await post(world, inbox, `/messages/${id}/reply`, { text_body: 'x' })).json().code;
  },
  forward: async (world, inbox) => {
    const { id } = await send(world, inbox, 'bob@people.example');
    return async () =>
      (await post(world, inbox, `/messages/${id}/forward`, { to: [{ email: ADA }] })).json().code;
  },
  'scheduled draft': async ({ organization }, inbox) => {
    const drafts = createDraftService({
      notifications: createNotificationService({ outbox }),
      approvalMs: TEST_APPROVAL_MS,
      unsubscribeLinks: testUnsubscribeLinks,
      database: app.worker,
      outbox,
      events,
    });
    const { draft } = await drafts.create(testScope(organization, inbox), inbox.id, {
      to: [{ email: ADA }],
      sendAt: new Date(Date.now() - 1_000),
    });
    return async () =>
      (await drafts.sendDue(draft.id, draft.scheduleVersion)) === 'refused' ? 'message_rejected' : undefined;
  },
  submission: async (world, inbox) => () =>
    submit(world, inbox).then(
      () => undefined,
      (error: unknown) => (error instanceof AppError ? error.code : String(error)),
    ),
};

/** The inboxes that a suppression by a key of each binding applies to. */
const REACH: Record<Binding, InboxName[]> = {
  organization: ['own', 'sibling', 'sandbox'],
  environment: ['own', 'sibling'],
  inbox: ['own'],
};
const CASES = (Object.keys(REACH) as Binding[]).flatMap((binding) =>
  Object.keys(WAYS).map((way) => [binding, way] as const),
);

test.each(CASES)('a suppression by a key of the %s applies there alone: %s', async (binding, way) => {
  const world = await arrange();
  const attempts = await Promise.all(
    Object.entries(world.inboxes).map(
      async ([name, inbox]) => [name, await WAYS[way]?.(world, inbox)] as const,
    ),
  );
  const suppressed = await suppress(world.keys[binding]);
  expect(suppressed.json()).toMatchObject({ scope: binding, origin: 'manual' });
  const refused: Record<string, string | undefined> = {};
  for (const [name, attempt] of attempts) refused[name] = await attempt?.();
  expect(refused).toEqual(
    Object.fromEntries(
      Object.keys(world.inboxes).map((name) => [
        name,
        REACH[binding].includes(name as InboxName) ? 'message_rejected' : undefined,
      ]),
    ),
  );
});

test('an address has one suppression in each scope, and a wider key sees the narrower ones', async () => {
  const { keys } = await arrange();
  for (const binding of ['organization', 'environment', 'inbox'] as const) {
    expect((await suppress(keys[binding])).statusCode).toBe(201);
    const again = await suppress(keys[binding]);
    expect(again.statusCode).toBe(200);
    expect(again.json()).toMatchObject({ scope: binding });
  }
  const scopes = async (binding: Binding) => (await listed(keys[binding])).map(({ scope }) => scope);
  expect(await scopes('organization')).toEqual(['inbox', 'environment', 'organization']);
  expect(await scopes('environment')).toEqual(['inbox', 'environment']);
  expect(await scopes('inbox')).toEqual(['inbox']);
});

test.each([
  ['inbox', ['environment', 'organization']],
  ['environment', ['organization']],
  ['organization', []],
] as const)('a key of the %s removes what lies within its scope', async (binding, left) => {
  const { keys } = await arrange();
  for (const token of Object.values(keys)) await suppress(token);
  const remove = () => app.call(PATH, { method: 'DELETE', token: keys[binding] });
  expect((await remove()).statusCode).toBe(204);
  expect((await listed(keys.organization)).map(({ scope }) => scope)).toEqual(left);
  expectProblem(await remove(), 'not_found');
});

test('a bound key sees a bounce of its own inbox but cannot remove it for the whole organization', async () => {
  const world = await arrange();
  await suppress(world.organization.token);
  await asBounceOf(world);
  expect(await listed(world.keys.inbox)).toMatchObject([{ scope: 'organization', origin: 'bounce' }]);
  for (const binding of ['inbox', 'environment'] as const) {
    const response = await app.call(PATH, { method: 'DELETE', token: world.keys[binding] });
    expectProblem(response, 'permission_denied');
  }
  expect(await listed(world.keys.organization)).toHaveLength(1);
});

/** Makes the organization's suppression one that a bounce in the inbox `own` created. */
async function asBounceOf({ organization, inboxes: { own } }: World): Promise<void> {
  await app.worker.db
    .updateTable('suppressions')
    .set({ origin: 'bounce', env_id: own.environmentId, inbox_id: own.id })
    .where('org_id', '=', organization.organizationId)
    .execute();
}
