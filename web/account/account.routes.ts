import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { localPath } from '../../api/people/local-path.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { OwnOrganizationService } from '../../domain/people/own-organization.service.ts';
import type { PasswordService } from '../../domain/people/password.service.ts';
import type { TotpSetup } from '../../domain/people/totp.ts';
import { AppError } from '../../platform/errors.ts';
import { PageQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';
import { rejectionOf } from '../shell/pages.ts';
import {
  type AccountPageDependencies,
  finishAccountForm,
  showAccount,
  showRecoveryCodes,
} from './account-page.ts';

export interface AccountRouteDependencies extends AccountPageDependencies {
  passwords: PasswordService;
  ownOrganizations: OwnOrganizationService;
}

/** The person's own account: profile, address, password, second factors and sessions. */
export const accountPages =
  (dependencies: AccountRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, accounts, ownOrganizations, passwords, mfa, sessions } = dependencies;

    const show = (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      showAccount(dependencies, request, reply, problem);
    const finish = (request: FastifyRequest, reply: FastifyReply, work: Promise<unknown>, notice: Notice) =>
      finishAccountForm(dependencies, request, reply, { work, notice });

    app.get(
      '/account',
      { config: { person: 'any' }, schema: { operationId: 'pages.account', querystring: PageQuery } },
      async (request, reply) => show(request, reply),
    );

    const showOrganizations = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { organizations } = await accounts.get(request.person.userId);
      const { next } = request.query as { next?: string };
      const [target] = localPath(next, '/overview').split('?');
      return pages.send(request, reply, {
        template: 'sign-in/choose-organization',
        title: 'Choose an organization',
        data: { organizations, target },
        problem,
      });
    };

    app.get(
      '/organizations',
      {
        config: { person: 'full' },
        schema: { operationId: 'pages.chooseOrganization', querystring: PageQuery },
      },
      async (request, reply) => {
        return showOrganizations(request, reply);
      },
    );

    pages.form(app, '/organizations', {
      config: { person: 'full' },
      schema: {
        operationId: 'pages.createOrganization',
        body: strictObject({ name: text(200, { minLength: 1 }) }),
      },
      work: (request) => ownOrganizations.create(request.person, request.body),
      show: (request, reply, problem) => showOrganizations(request, reply, problem),
      done: (_request, reply, { organizationId }) =>
        pages.seeOther(reply, `/overview?org=${organizationId}`, 'organization-created'),
    });

    app.post(
      '/account/profile',
      {
        config: { person: 'full' },
        schema: { operationId: 'pages.updateProfile', body: strictObject({ name: text(200) }) },
      },
      async (request, reply) => {
        const name = request.body.name.trim() || null;
        return finish(request, reply, accounts.update(request.person, { name }), 'saved');
      },
    );

    app.post(
      '/account/email',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'pages.requestEmailChange',
          body: strictObject({ new_email: text(254), current_password: Type.Optional(text(256)) }),
        },
      },
      async (request, reply) => {
        const { new_email: newEmail, current_password: currentPassword } = request.body;
        const change = { newEmail, ...(currentPassword ? { currentPassword } : {}) };
        return finish(request, reply, accounts.requestEmailChange(request.person, change), 'check-mail');
      },
    );

    app.post(
      '/account/password',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'pages.changePassword',
          body: strictObject({
            // Password managers read whose password the form changes.
            username: Type.Optional(text(254)),
            current_password: Type.Optional(text(256)),
            new_password: text(256),
          }),
        },
      },
      async (request, reply) => {
        const { new_password: newPassword, current_password: currentPassword } = request.body;
        const change = { newPassword, ...(currentPassword ? { currentPassword } : {}) };
        return finish(request, reply, passwords.change(request.person, change), 'password-changed');
      },
    );

    /** After a mistyped code, too: the person may not have scanned the secret yet. */
    const showTotpSetup = (
      request: FastifyRequest,
      reply: FastifyReply,
      {
        enrollmentId,
        setup,
        problem,
      }: { enrollmentId: string; setup: TotpSetup | undefined; problem?: AppError },
    ) =>
      pages.send(request, reply, {
        template: 'account/totp-setup',
        title: 'Add an authenticator app',
        data: {
          enrollmentId,
          ...(setup ? { secret: setup.secret, qr: Buffer.from(setup.qrSvg).toString('base64') } : {}),
        },
        problem,
      });

    app.post(
      '/account/factors/totp',
      {
        config: { person: 'any' },
        schema: { operationId: 'pages.setUpTotp', body: strictObject({ name: Type.Optional(text(200)) }) },
      },
      async (request, reply) => {
        const settingUp = mfa.setUpTotp(request.person, request.body.name?.trim() || undefined);
        const problem = await rejectionOf(settingUp);
        if (problem) return show(request, reply, problem);
        const { enrollmentId, ...setup } = await settingUp;
        return showTotpSetup(request, reply, { enrollmentId, setup });
      },
    );

    app.post(
      '/account/factors/totp/confirm',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'pages.confirmTotp',
          body: strictObject({ enrollment_id: text(64), code: text(32) }),
        },
      },
      async (request, reply) => {
        const { enrollment_id: enrollmentId, code } = request.body;
        const confirming = mfa.confirmTotp(request.person, { enrollmentId, code });
        const problem = await rejectionOf(confirming);
        if (problem?.code === 'invalid_credentials')
          return showTotpSetup(request, reply, {
            enrollmentId,
            setup: await mfa.findPendingTotp(request.person, enrollmentId),
            problem: wrongCode(),
          });
        if (problem) return show(request, reply, problem);
        const { recoveryCodes } = await confirming;
        if (recoveryCodes === null) return pages.seeOther(reply, '/account', 'saved');
        return showRecoveryCodes(pages, request, reply, recoveryCodes);
      },
    );

    app.post(
      '/account/recovery-codes',
      {
        config: { person: 'full' },
        schema: { operationId: 'pages.replaceRecoveryCodes', body: strictObject({}) },
      },
      async (request, reply) => {
        const replacing = mfa.regenerateRecoveryCodes(request.person);
        const problem = await rejectionOf(replacing);
        if (problem) return show(request, reply, problem);
        return showRecoveryCodes(pages, request, reply, await replacing);
      },
    );

    app.post(
      '/account/factors/remove',
      {
        config: { person: 'full' },
        schema: { operationId: 'pages.removeFactor', body: strictObject({ enrollment_id: text(64) }) },
      },
      async (request, reply) => {
        return finish(
          request,
          reply,
          mfa.remove(request.person, request.body.enrollment_id),
          'factor-removed',
        );
      },
    );

    app.post(
      '/account/sessions/end',
      {
        config: { person: 'full' },
        schema: { operationId: 'pages.endSession', body: strictObject({ session_id: text(64) }) },
      },
      async (request, reply) => {
        return finish(
          request,
          reply,
          sessions.revoke(request.person, request.body.session_id),
          'session-ended',
        );
      },
    );

    app.post(
      '/account/sessions/end-others',
      {
        config: { person: 'full' },
        schema: { operationId: 'pages.endOtherSessions', body: strictObject({}) },
      },
      async ({ person }, reply) => {
        await sessions.revokeAll(person, { keepCurrent: true });
        return pages.seeOther(reply, '/account', 'sessions-ended');
      },
    );
    done();
  };

const wrongCode = () =>
  new AppError('invalid_credentials', {
    detail: 'The code is wrong.',
    fix: 'Enter the latest six digits, and check the clock of the device.',
    errors: [{ path: '/body/code', message: 'is not the one that the app shows now' }],
  });
