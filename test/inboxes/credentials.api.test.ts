import { beforeAll, expect, test } from '@jest/globals';
import { createCredentialService } from '../../domain/inboxes/credential.service.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

interface Credentials {
  username: string;
  password: string;
}
const rotate = (inboxId: string, token = organization.token) =>
  app.call(`/inboxes/${inboxId}/credentials/rotate`, { method: 'POST', token });

test('a password is created on demand, shown once and replaces the previous one', async () => {
  const inbox = await createInbox(app.worker, organization);
  const read = () => app.call(`/inboxes/${inbox.id}/credentials`, { token: organization.token });
  const before = {
    object: 'inbox_credentials',
    host: 'mail.test',
    port: 2587,
    security: 'starttls',
    implicit_tls_port: null,
    username: inbox.email,
  };
  expect((await read()).json()).toEqual({ ...before, rotated_at: null });
  const response = await rotate(inbox.id);
  expect(response.statusCode).toBe(200);
  const first = response.json<Credentials>();
  expect(first).toEqual({
    ...before,
    rotated_at: expect.any(String),
    password: expect.stringMatching(/^\w{32}$/),
  });
  expect((await read()).json()).not.toHaveProperty('password');
  const service = createCredentialService({ database: app.worker });
  expect(await service.authenticate(inbox.email.toUpperCase(), first.password)).toMatchObject({
    inbox: { id: inbox.id },
  });
  const second = (await rotate(inbox.id)).json<Credentials>();
  expect(await service.authenticate(inbox.email, first.password)).toBeNull();
  expect(await service.authenticate(inbox.email, second.password)).toMatchObject({ inbox: { id: inbox.id } });
  for (const wrong of ['', 'x', `${second.password} `, '\u0000'])
    expect(await service.authenticate(inbox.email, wrong)).toBeNull();
  expect(await service.authenticate('no\u0000body@mail.test', second.password)).toBeNull();
  await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token: organization.token });
  expect(await service.authenticate(inbox.email, second.password)).toBeNull();
});

test('concurrent rotations leave one valid password', async () => {
  const inbox = await createInbox(app.worker, organization);
  const responses = await Promise.all([rotate(inbox.id), rotate(inbox.id), rotate(inbox.id)]);
  const service = createCredentialService({ database: app.worker });
  const authenticated = await Promise.all(
    responses.map((answer) => service.authenticate(inbox.email, answer.json<Credentials>().password)),
  );
  expect(authenticated.filter(Boolean)).toHaveLength(1);
});

test('a key without messages:send cannot create a password', async () => {
  const inbox = await createInbox(app.worker, organization);
  const { token } = await createKey(app.worker, {
    ...organization,
    permissions: ['inboxes:read', 'inboxes:write'],
  });
  expectProblem(await rotate(inbox.id, token), 'permission_denied');
  const otherOrganization = await createOrganization(app.worker);
  expectProblem(await rotate(inbox.id, otherOrganization.token), 'not_found');
});
