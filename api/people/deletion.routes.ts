import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type {
  AccountDeletionService,
  DeletionPeriod,
  RecoveryProof,
} from '../../domain/deletions/account-deletion.service.ts';
import type { OrganizationDeletionService } from '../../domain/deletions/organization-deletion.service.ts';
import type { AccountService } from '../../domain/people/account.service.ts';
import { invalid } from '../../platform/errors.ts';
import {
  changeProblems,
  id,
  postProblems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import {
  email,
  MembershipRecord,
  password,
  presentMembership,
  presentSignIn,
  SignInResponse,
  token,
} from './auth.schemas.ts';
import { clientOf } from './client-of.ts';

export const DeleteAccount = strictObject(
  {
    current_password: Type.Optional(
      password('Without it, the session must have begun within the last ten minutes.'),
    ),
  },
  { $id: 'DeleteAccount', title: 'DeleteAccount' },
);
export const DeletionAccepted = resource(
  'deletion',
  {
    deleted_at: timestamp(),
    recoverable_until: timestamp('Then all data is deleted for good.'),
  },
  { $id: 'DeletionAccepted', title: 'DeletionAccepted' },
);
export const RecoverAccount = strictObject(
  {
    token: Type.Optional(token),
    email: Type.Optional(email),
    password: Type.Optional(password('With email, instead of the token.')),
  },
  {
    $id: 'RecoverAccount',
    title: 'RecoverAccount',
    description: 'Either the mailed token, or address and password.',
  },
);
export const CloseOrganization = strictObject(
  { name: text(255, { minLength: 1, description: 'The name of the organization, as a confirmation.' }) },
  { $id: 'CloseOrganization', title: 'CloseOrganization' },
);

export interface DeletionRouteDependencies {
  accountDeletions: AccountDeletionService;
  organizationDeletions: OrganizationDeletionService;
  accounts: AccountService;
}

/** Deletion and recovery of accounts and organizations. */
export const deletionOfPeopleRoutes =
  ({
    accountDeletions,
    organizationDeletions,
    accounts,
  }: DeletionRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.delete(
      '/user/me',
      {
        config: { person: 'full', bodyMayBeEmpty: true },
        schema: {
          operationId: 'user.delete',
          summary: 'Delete your account',
          description:
            'Ends all sessions and connections. Organizations of which you are the only member are closed. The account and they can be recovered for 30 days. The last owner of an organization with other members makes another one an owner first (409). An admin ends the role of staff of the service first (409).',
          tags: ['User'],
          body: ref(DeleteAccount),
          response: { 202: ref(DeletionAccepted), ...changeProblems() },
        },
      },
      async ({ person, body }, reply) => {
        const deletion = await accountDeletions.delete(person, body.current_password);
        return reply.code(202).send(presentDeletion(deletion));
      },
    );

    app.post(
      '/user/me/recover',
      {
        config: { public: true },
        schema: {
          operationId: 'user.recover',
          summary: 'Recover your deleted account and sign in',
          description:
            'Works for 30 days. Organizations that were closed with the account are opened again. An account with a second factor is recovered once POST /auth/mfa/challenge has proved it.',
          tags: ['User'],
          body: ref(RecoverAccount),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const proof = readProof(request.body);
        const { userId, signIn } = await accountDeletions.recover(proof, clientOf(request));
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );

    app.post(
      '/user/me/organizations/:organizationId/recover',
      {
        config: { person: 'fresh', bodyMayBeEmpty: true },
        schema: {
          operationId: 'user.recoverOrganization',
          summary: 'Recover a closed organization, as an owner',
          description:
            'Works for 30 days, with a sign-in within the last ten minutes that satisfies the policies of the organization. Everything is as it was; mail that waited is sent.',
          tags: ['User'],
          params: strictObject({ organizationId: id('Id of the organization (org_…).') }),
          response: { 200: ref(MembershipRecord), ...postProblems() },
        },
      },
      async ({ person, params }) =>
        presentMembership(await organizationDeletions.recover(person, params.organizationId)),
    );

    app.delete(
      '/org',
      {
        config: { permission: 'org:delete', readPermission: 'org:delete' },
        schema: {
          operationId: 'organization.delete',
          summary: 'Close the organization, as an owner',
          description:
            'Its keys and sessions are refused (403 organization_deleted), its addresses accept no mail (550), and messages and webhook deliveries that wait are held. An owner can recover it for 30 days: POST /user/me/organizations/{id}/recover. Then everything is deleted for good. Requires a sign-in within the last ten minutes.',
          tags: ['Organization'],
          body: ref(CloseOrganization),
          response: { 202: ref(DeletionAccepted), ...changeProblems() },
        },
      },
      async ({ scope, body }, reply) => {
        const deletion = await organizationDeletions.delete(scope, body.name);
        return reply.code(202).send(presentDeletion(deletion));
      },
    );
    done();
  };

function presentDeletion({ deletedAt, recoverableUntil }: DeletionPeriod): Static<typeof DeletionAccepted> {
  return {
    object: 'deletion',
    deleted_at: deletedAt.toISOString(),
    recoverable_until: recoverableUntil.toISOString(),
  };
}

/** @throws AppError `validation_error` unless the body is exactly one of the two proofs. */
function readProof({
  token: mailed,
  email: address,
  password: secret,
}: Static<typeof RecoverAccount>): RecoveryProof {
  if (mailed !== undefined && address === undefined && secret === undefined) return { token: mailed };
  if (mailed === undefined && address !== undefined && secret !== undefined)
    return { email: address, password: secret };
  throw invalid('/body', 'needs either token, or email and password', 'Send exactly one of the two.');
}
