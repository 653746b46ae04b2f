import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { OwnOrganizationService } from '../../domain/people/own-organization.service.ts';
import type { PasswordService } from '../../domain/people/password.service.ts';
import { changeProblems, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  Accepted,
  ChangeEmail,
  ChangePassword,
  CreateOrganization,
  MembershipRecord,
  presentMembership,
  presentUser,
  UpdateUser,
  UserRecord,
} from './auth.schemas.ts';

export const userRoutes =
  ({
    accounts,
    ownOrganizations,
    passwords,
  }: {
    accounts: AccountService;
    ownOrganizations: OwnOrganizationService;
    passwords: PasswordService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/user/me',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'user.get',
          summary: 'Get your profile',
          tags: ['User'],
          response: { 200: ref(UserRecord), ...problems() },
        },
      },
      async ({ person }) => presentUser(await accounts.get(person.userId)),
    );

    app.patch(
      '/user/me',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.update',
          summary: 'Change your profile',
          tags: ['User'],
          body: ref(UpdateUser),
          response: { 200: ref(UserRecord), ...changeProblems() },
        },
      },
      async ({ person, body: { name, avatar_url: avatarUrl } }) =>
        presentUser(
          await accounts.update(person, {
            ...(name === undefined ? {} : { name }),
            ...(avatarUrl === undefined ? {} : { avatarUrl }),
          }),
        ),
    );

    app.get(
      '/user/me/organizations',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'user.listOrganizations',
          summary: 'List the organizations you belong to, with closed ones that can be recovered',
          tags: ['User'],
          response: {
            200: strictObject(
              { data: Type.Array(ref(MembershipRecord), { maxItems: 1_000 }) },
              { description: 'All organizations, oldest first.' },
            ),
            ...problems(),
          },
        },
      },
      async ({ person }) => ({
        data: (await accounts.listOrganizations(person.userId)).map(presentMembership),
      }),
    );

    app.post(
      '/user/me/organizations',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.createOrganization',
          summary: 'Create another organization, as its owner',
          description:
            'It has the environments production and sandbox, and no API key yet: name it in x-org-id with POST /api-keys. A person owns at most 10 organizations. Refused (403) for a session from a single sign-on, which opens only its own organization.',
          tags: ['User'],
          body: ref(CreateOrganization),
          response: { 201: ref(MembershipRecord), ...postProblems() },
        },
      },
      async ({ person, body }, reply) => {
        const created = await ownOrganizations.create(person, body);
        return reply.code(201).send(presentMembership(created));
      },
    );

    app.post(
      '/user/me/change-password',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.changePassword',
          summary: 'Change your password',
          description: 'Ends your other sessions, and all connections.',
          tags: ['User'],
          body: ref(ChangePassword),
          response: { 204: NoContent, ...postProblems() },
        },
      },
      async ({ person, body }, reply) => {
        const { current_password: currentPassword, new_password: newPassword } = body;
        await passwords.change(person, {
          newPassword,
          ...(currentPassword === undefined ? {} : { currentPassword }),
        });
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/user/me/change-email',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.changeEmail',
          summary: 'Request a new email address',
          description:
            'Mails a token to the new address. The address changes with POST /auth/change-email/confirm.',
          tags: ['User'],
          body: ref(ChangeEmail),
          response: {
            202: ref(Accepted),
            ...postProblems(),
          },
        },
      },
      async ({ person, body }, reply) => {
        const { current_password: currentPassword, new_email: newEmail } = body;
        await accounts.requestEmailChange(person, {
          newEmail,
          ...(currentPassword === undefined ? {} : { currentPassword }),
        });
        return reply.code(202).send({ object: 'acknowledgement', status: 'accepted' });
      },
    );
    done();
  };
