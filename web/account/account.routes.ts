import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { localPath } from '../../api/people/local-path.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { OwnOrganizationService } from '../../domain/people/own-organization.service.ts';
import type { PasswordService } from '../../domain/people/password.service.ts';
import type { TotpSetup } from '../../domain/people/totp.ts';
import { AppError } from '../../platform/errors.ts';
import { enteredText, PageQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';
import { type AccountPageDependencies, showAccount, showRecoveryCodes } from './account-page.ts';

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
    const backWith = (notice: Notice) => (_request: FastifyRequest, reply: FastifyReply) =>
      pages.seeOther(reply, '/account', notice);

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

    pages.form(app, '/account/profile', {
      config: { person: 'full' },
      schema: { operationId: 'pages.updateProfile', body: strictObject({ name: text(200) }) },
      work: ({ person, body }) => accounts.update(person, { name: body.name.trim() || null }),
      show,
      done: backWith('saved'),
    });

    pages.form(app, '/account/email', {
      config: { person: 'full' },
      schema: {
        operationId: 'pages.requestEmailChange',
        body: strictObject({ new_email: text(254), current_password: Type.Optional(text(256)) }),
      },
      work: ({ person, body }) => {
        const { new_email: newEmail, current_password: currentPassword } = body;
        return accounts.requestEmailChange(person, {
          newEmail,
          ...(currentPassword ? { currentPassword } : {}),
        });
      },
      show,
      done: backWith('check-mail'),
    });

    pages.form(app, '/account/password', {
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
      work: ({ person, body }) => {
        const { new_password: newPassword, current_password: currentPassword } = body;
        return passwords.change(person, { newPassword, ...(currentPassword ? { currentPassword } : {}) });
      },
      show,
      done: backWith('password-changed'),
    });

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

    pages.form(app, '/account/factors/totp', {
      config: { person: 'any' },
      schema: { operationId: 'pages.setUpTotp', body: strictObject({ name: Type.Optional(text(200)) }) },
      work: ({ person, body }) => mfa.setUpTotp(person, body.name?.trim() || undefined),
      show,
      done: (request, reply, { enrollmentId, ...setup }) =>
        showTotpSetup(request, reply, { enrollmentId, setup }),
    });

    pages.form(app, '/account/factors/totp/confirm', {
      config: { person: 'any' },
      schema: {
        operationId: 'pages.confirmTotp',
        body: strictObject({ enrollment_id: text(64), code: text(32) }),
      },
      work: ({ person, body }) =>
        mfa.confirmTotp(person, { enrollmentId: body.enrollment_id, code: body.code }),
      async show(request, reply, problem) {
        const enrollmentId = enteredText(request, 'enrollment_id');
        const isWrong = problem.code === 'invalid_credentials';
        if (!isWrong && problem.code !== 'validation_error') return show(request, reply, problem);
        return showTotpSetup(request, reply, {
          enrollmentId,
          setup: await mfa.findPendingTotp(request.person, enrollmentId),
          problem: isWrong ? wrongCode() : problem,
        });
      },
      done: (request, reply, { recoveryCodes }) =>
        recoveryCodes === null
          ? pages.seeOther(reply, '/account', 'saved')
          : showRecoveryCodes(pages, request, reply, recoveryCodes),
    });

    pages.form(app, '/account/recovery-codes', {
      config: { person: 'full' },
      schema: { operationId: 'pages.replaceRecoveryCodes', body: strictObject({}) },
      work: ({ person }) => mfa.regenerateRecoveryCodes(person),
      show,
      done: (request, reply, codes) => showRecoveryCodes(pages, request, reply, codes),
    });

    pages.form(app, '/account/factors/remove', {
      config: { person: 'full' },
      schema: { operationId: 'pages.removeFactor', body: strictObject({ enrollment_id: text(64) }) },
      work: ({ person, body }) => mfa.remove(person, body.enrollment_id),
      show,
      done: backWith('factor-removed'),
    });

    pages.form(app, '/account/sessions/end', {
      config: { person: 'full' },
      schema: { operationId: 'pages.endSession', body: strictObject({ session_id: text(64) }) },
      work: ({ person, body }) => sessions.revoke(person, body.session_id),
      show,
      done: backWith('session-ended'),
    });

    pages.form(app, '/account/sessions/end-others', {
      config: { person: 'full' },
      schema: { operationId: 'pages.endOtherSessions', body: strictObject({}) },
      work: ({ person }) => sessions.revokeAll(person, { keepCurrent: true }),
      show,
      done: backWith('sessions-ended'),
    });
    done();
  };

const wrongCode = () =>
  new AppError('invalid_credentials', {
    detail: 'The code is wrong.',
    fix: 'Enter the latest six digits, and check the clock of the device.',
    errors: [{ path: '/body/code', message: 'is not the one that the app shows now' }],
  });
