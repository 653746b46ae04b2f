import { describe, expect, test } from '@jest/globals';
import type { MemberRole } from '../../domain/identity/roles.ts';
import type { ApprovalMode } from '../../domain/policies/organization-policies.entity.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();
const CONTENT = { to: ['ada@people.example'], subject: 'Offer', text_body: 'x' };

async function arrange(requireSendApproval: ApprovalMode = 'off') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const inbox = await createInbox(app.worker, organization);
  const setPolicy = (mode: ApprovalMode) =>
    setPolicies(app.worker, organizationId, { require_send_approval: mode });
  await setPolicy(requireSendApproval);
  const as = (credential: string) => ({
    create: async (body: object = CONTENT) =>
      (await app.call(`/inboxes/${inbox.id}/drafts`, { method: 'POST', token: credential, body })).json<{
        id: string;
        version: number;
      }>(),
    patch: (id: string, body: object, headers = {}) =>
      app.call(`/drafts/${id}`, { method: 'PATCH', token: credential, body, headers }),
    remove: (id: string, headers = {}) =>
      app.call(`/drafts/${id}`, { method: 'DELETE', token: credential, headers }),
    send: (id: string, body?: object, headers = {}) =>
      app.call(`/drafts/${id}/send`, { method: 'POST', token: credential, body, headers }),
    get: (id: string) => app.call(`/drafts/${id}`, { token: credential }),
  });
  const person = async (role: MemberRole = 'developer') => {
    const userId = await createTestUser(app.worker, { organizationId, role });
    return as((await createTestSession(app.worker, userId)).token);
  };
  return { organization, key: as(token), person: await person(), setPolicy };
}

const NO_MATCH = ['"2"', '"2", "3"', 'W/"1"', '"x"', '"01"', '2', '""'];
const MATCH = ['"1"', '1', '*', ' * ', '"7" , "1"', ', "1",,', 'W/"1", "1"', '"a,b", "1"'];
const MALFORMED = ['"1', '"1 "', 'x', '"1" "2"', '"1"x', 'w/"1"', '*, "1"', ''];

describe('If-Match', () => {
  test.each(NO_MATCH)('%s does not match version 1: a change, send or deletion is a 412', async (tag) => {
    const { key } = await arrange();
    const { id } = await key.create();
    const headers = { 'if-match': tag };
    for (const response of [
      await key.patch(id, { subject: 'b' }, headers),
      await key.send(id, undefined, headers),
      await key.remove(id, headers),
    ])
      expect(expectProblem(response, 'precondition_failed')).toMatchObject({ status: 412, version: 1 });
    expect((await key.get(id)).json()).toMatchObject({ version: 1, subject: 'Offer', send_status: 'draft' });
  });

  test.each(MATCH)('%s matches version 1', async (tag) => {
    const { key } = await arrange();
    const headers = { 'if-match': tag };
    expect((await key.patch((await key.create()).id, { subject: 'b' }, headers)).statusCode).toBe(200);
    expect((await key.send((await key.create()).id, undefined, headers)).statusCode).toBe(201);
    expect((await key.remove((await key.create()).id, headers)).statusCode).toBe(204);
  });

  test.each(MALFORMED)('%j is malformed: a 400 that changes nothing', async (tag) => {
    const { key } = await arrange();
    const { id } = await key.create();
    const headers = { 'if-match': tag };
    for (const response of [
      await key.patch(id, { subject: 'b' }, headers),
      await key.send(id, undefined, headers),
      await key.remove(id, headers),
    ])
      expect(expectProblem(response, 'validation_error').errors).toEqual([
        { path: 'If-Match', message: 'is neither * nor a list of entity tags' },
      ]);
    expect((await key.get(id)).json().version).toBe(1);
  });

  test('of a draft that is gone is a 404', async () => {
    const { key } = await arrange();
    const { id } = await key.create();
    expect((await key.send(id)).statusCode).toBe(201);
    for (const tag of ['"1"', '"2"', '*'])
      for (const call of [key.patch(id, {}, { 'if-match': tag }), key.send(id, {}, { 'if-match': tag })])
        expectProblem(await call, 'not_found');
  });

  test('lets one of two sends and a change of the same version win', async () => {
    const { key } = await arrange();
    const { id } = await key.create();
    const headers = { 'if-match': '"1"' };
    const [sent, changed] = await Promise.all([
      key.send(id, undefined, headers),
      key.patch(id, { subject: 'b' }, headers),
    ]);
    expect([
      [201, 404],
      [412, 200],
    ]).toContainEqual([sent.statusCode, changed.statusCode]);
  });

  test('is read again when a request with the same Idempotency-Key is repeated', async () => {
    const { key } = await arrange();
    const { id } = await key.create();
    const repeated = { 'idempotency-key': 'k1' };
    expectProblem(await key.send(id, undefined, { ...repeated, 'if-match': '"2"' }), 'precondition_failed');
    expect((await key.send(id, undefined, { ...repeated, 'if-match': '"1"' })).statusCode).toBe(201);
  });
});

describe('the version in the body of a send', () => {
  test('must be that of the draft: another one is a 409 that sends nothing', async () => {
    const { key } = await arrange();
    const { id } = await key.create();
    expect(expectProblem(await key.send(id, { version: 2 }), 'conflict').version).toBe(1);
    expectProblem(await key.send(id, { version: 0 }), 'validation_error');
    expectProblem(await key.send(id, { version: '1' }), 'validation_error');
    expectProblem(await key.send(id, { versions: 1 }), 'validation_error');
    expectProblem(await key.send(id, { version: 2 }, { 'if-match': '"1"' }), 'conflict');
    expectProblem(await key.send(id, { version: 1 }, { 'if-match': '"2"' }), 'precondition_failed');
    expect((await key.send(id, { version: 1 }, { 'if-match': '"1"' })).statusCode).toBe(201);
  });

  test('is optional, and null means not given', async () => {
    const { key } = await arrange();
    for (const body of [undefined, {}, { version: null }])
      expect((await key.send((await key.create()).id, body)).statusCode).toBe(201);
  });
});

describe('a person who sends a draft that a key made or last changed', () => {
  test.each(['all', 'external'] as const)('names its version under `%s`', async (mode) => {
    const { key, person } = await arrange(mode);
    const { id } = await key.create();
    const problem = expectProblem(await person.send(id), 'precondition_required');
    expect(problem).toMatchObject({ status: 428, version: 1, fix: expect.stringContaining('"version": 1') });
    expectProblem(await person.send(id, {}), 'precondition_required');
    expect((await person.get(id)).json()).toMatchObject({ send_status: 'draft', version: 1 });
    expect((await person.send(id, { version: 1 })).statusCode).toBe(201);
    const other = await key.create();
    expect((await person.send(other.id, undefined, { 'if-match': '"1"' })).statusCode).toBe(201);
  });

  test('does not send what the key changed after the person looked', async () => {
    const { key, person } = await arrange('all');
    const { id, version } = await person.create();
    expect((await key.patch(id, { text_body: 'Wire the money' })).statusCode).toBe(200);
    expectProblem(await person.send(id), 'precondition_required');
    expectProblem(await person.send(id, { version }), 'conflict');
    expectProblem(await person.send(id, undefined, { 'if-match': `"${version}"` }), 'precondition_failed');
    expect((await person.get(id)).json()).toMatchObject({
      send_status: 'draft',
      text_body: 'Wire the money',
    });
  });

  test('need not name a version that a person made last', async () => {
    const { key, person } = await arrange('all');
    const { id } = await key.create();
    expect((await person.patch(id, { text_body: 'Mine' })).statusCode).toBe(200);
    expect((await person.send(id)).statusCode).toBe(201);
    expect((await person.send((await person.create()).id)).statusCode).toBe(201);
  });

  test('names it to schedule the draft, and to change what is scheduled: both are sent under their name', async () => {
    const { key, person } = await arrange('all');
    const { id } = await key.create();
    const inAnHour = { send_at: new Date(Date.now() + 3_600_000).toISOString() };
    const problem = expectProblem(await person.patch(id, inAnHour), 'precondition_required');
    expect(problem).toMatchObject({ status: 428, version: 1, fix: expect.stringContaining('If-Match: "1"') });
    expect((await person.get(id)).json()).toMatchObject({ send_status: 'draft', send_at: null, version: 1 });
    expect((await person.patch(id, inAnHour, { 'if-match': '"1"' })).json().send_status).toBe('scheduled');
    expect((await person.patch(id, inAnHour)).statusCode).toBe(200);
  });

  test('names it to change what a key has scheduled, but not to unschedule it', async () => {
    const { key, person, setPolicy } = await arrange('off');
    const inAnHour = { send_at: new Date(Date.now() + 3_600_000).toISOString() };
    const { id } = await key.create({ ...CONTENT, ...inAnHour });
    await setPolicy('all');
    expectProblem(await person.patch(id, { subject: 'b' }), 'precondition_required');
    expect((await person.patch(id, { send_at: null })).json().send_status).toBe('draft');
  });

  test('need not name it without a policy that asks for approval', async () => {
    const { key, person } = await arrange('off');
    expect((await person.send((await key.create()).id)).statusCode).toBe(201);
  });

  test('may repeat the request with the same Idempotency-Key', async () => {
    const { key, person } = await arrange('all');
    const { id } = await key.create();
    const repeated = { 'idempotency-key': 'k1' };
    expectProblem(await person.send(id, undefined, repeated), 'precondition_required');
    expect((await person.send(id, { version: 1 }, repeated)).statusCode).toBe(201);
  });
});
