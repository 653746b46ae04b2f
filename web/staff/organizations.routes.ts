import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { requireBilling } from '../../api/billing/require-billing.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { parseDay } from '../../api/time.ts';
import type { LimitAdministrationService } from '../../domain/administration/limit-administration.service.ts';
import type { OrganizationDetailsService } from '../../domain/administration/organization-details.service.ts';
import {
  DIRECTORY_STATUSES,
  type DirectoryEntry,
  type OrganizationDirectoryService,
} from '../../domain/administration/organization-directory.service.ts';
import type { OwnerAdministrationService } from '../../domain/administration/owner-administration.service.ts';
import type { SuspensionAdministrationService } from '../../domain/administration/suspension-administration.service.ts';
import type { BillingAdministrationService } from '../../domain/billing/billing-administration.service.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import { SUSPENSION_REASONS, SUSPENSION_TARGETS } from '../../domain/suspensions/suspension.entity.ts';
import { LIMITED_RESOURCES, USAGE_COUNTERS } from '../../domain/usage/counters.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import type { Page } from '../../platform/pagination.ts';
import { MAX_EXTENSION_DAYS } from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { OptionalText } from '../shell/forms.ts';
import { Checked, type Console, NoticeQuery, ResourceParams } from './console.ts';
import { filled, nextPage } from './filters.ts';

export interface OrganizationConsoleDependencies {
  console: Console;
  organizationDirectory: OrganizationDirectoryService;
  organizationDetails: OrganizationDetailsService;
  suspensionAdministration: SuspensionAdministrationService;
  limitAdministration: LimitAdministrationService;
  ownerAdministration: OwnerAdministrationService;
  /** Undefined if the service does not use billing. */
  billingAdministration: BillingAdministrationService | undefined;
  lists: Lists;
}

const TOP_LIMIT = 25;
const LATEST = { limit: 20, order: 'desc' } as const;
/** Suspensions in force. */
const LISTED = { limit: 100, order: 'desc' } as const;

/** Empty: unlimited. As the API, it takes no number that JSON would round. */
const LimitField = Type.Unsafe<string>({ type: 'string', maxLength: 15, pattern: '^\\d*$' });

const TargetForm = strictObject({
  target_type: enumOf(SUSPENSION_TARGETS),
  target_id: text(64),
  reason: enumOf(SUSPENSION_REASONS),
  note: Note,
});

/** Organizations: find one, see it, suspend it, change what it is granted. */
export const organizationConsole =
  (dependencies: OrganizationConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { console, organizationDirectory, organizationDetails, lists } = dependencies;
    const { suspensionAdministration, limitAdministration, ownerAdministration, billingAdministration } =
      dependencies;

    app.get(
      '/admin/organizations',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.organizations',
          querystring: strictObject({
            ...pageQuery,
            q: OptionalText(254),
            status: Type.Optional(enumOf(['', ...DIRECTORY_STATUSES])),
            tier: Type.Optional(enumOf(['', ...TIERS])),
            top: Type.Optional(enumOf(['', ...USAGE_COUNTERS])),
          }),
        },
      },
      async (request, reply) => {
        const { q = '', status, tier, top } = request.query;
        const { staff } = request;
        const counter = top || undefined;
        const listed = counter ? await organizationDirectory.top(staff, counter, TOP_LIMIT) : undefined;
        const page: Page<DirectoryEntry> | undefined = listed
          ? undefined
          : q.trim() === ''
            ? await organizationDirectory.list(
                staff,
                { status: status || undefined, tier: tier || undefined },
                lists.read(request),
              )
            : await organizationDirectory.search(staff, q, lists.read(request));
        return console.send(request, reply, {
          template: 'staff/organizations',
          title: 'Organizations',
          data: {
            filter: filled({ q, status, tier, top }),
            organizations:
              listed ?? page?.items.map((organization) => ({ organization, value: undefined })) ?? [],
            counter,
            statuses: DIRECTORY_STATUSES,
            tiers: TIERS,
            counters: USAGE_COUNTERS,
            nextPage:
              page &&
              nextPage(
                request,
                lists.present(request, page, () => null),
              ),
          },
        });
      },
    );

    type OrganizationRequest = FastifyRequest<{ Params: { id: string } }>;
    const show = async (request: OrganizationRequest, reply: FastifyReply, problem?: AppError) => {
      const { staff } = request;
      const { id } = request.params;
      const organization = await organizationDetails.get(staff, id);
      const [open, lifted, overrides, ledger] = await Promise.all([
        suspensionAdministration.list(staff, id, { isOpen: true }, LISTED),
        suspensionAdministration.list(staff, id, { isOpen: false }, LATEST),
        limitAdministration.listOverrides(staff, id),
        organizationDetails.listUsageEvents(staff, id, { kind: undefined }, LATEST),
      ]);
      return console.send(request, reply, {
        template: 'staff/organization',
        title: organization.name,
        problem,
        log: { organizationId: id },
        data: {
          organization,
          open: open.items,
          hasMoreOpen: open.next !== null,
          lifted: lifted.items,
          hasMoreLifted: lifted.next !== null,
          overrides,
          ledger: ledger.items,
          reasons: SUSPENSION_REASONS,
          targets: SUSPENSION_TARGETS,
          tiers: TIERS,
          resources: LIMITED_RESOURCES,
          kinds: LIMIT_KINDS,
          billing: await billingAdministration?.get(staff, id),
          maxExtensionDays: MAX_EXTENSION_DAYS,
        },
      });
    };
    const finish = (request: OrganizationRequest, reply: FastifyReply, work: Promise<unknown>) =>
      console.finish(reply, {
        work,
        back: `/admin/organizations/${request.params.id}`,
        show: (problem) => show(request, reply, problem),
      });

    app.get(
      '/admin/organizations/:id',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.organization',
          params: ResourceParams,
          querystring: NoticeQuery,
        },
      },
      async (request, reply) => show(request, reply),
    );

    for (const action of ['suspend', 'reinstate'] as const)
      app.post(
        `/admin/organizations/:id/${action}`,
        {
          config: { staff: 'admin' },
          schema: { operationId: `console.${action}`, params: ResourceParams, body: TargetForm },
        },
        async (request, reply) => {
          const { target_type: type, target_id: id, reason, note } = request.body;
          const target = { type, id, organizationId: request.params.id };
          const changing = suspensionAdministration.change(request.staff, action, target, { reason, note });
          return finish(request, reply, changing);
        },
      );

    app.post(
      '/admin/organizations/:id/tier',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.setTier',
          params: ResourceParams,
          body: strictObject({ tier: enumOf(TIERS), note: Note }),
        },
      },
      async (request, reply) =>
        finish(request, reply, limitAdministration.setTier(request.staff, request.params.id, request.body)),
    );

    app.post(
      '/admin/organizations/:id/overrides',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.setOverride',
          params: ResourceParams,
          body: strictObject({
            resource: enumOf(LIMITED_RESOURCES),
            limit: LimitField,
            kind: enumOf(LIMIT_KINDS),
            expires_on: Type.Unsafe<string>({
              type: 'string',
              maxLength: 10,
              pattern: '^(\\d{4}-\\d\\d-\\d\\d)?$',
            }),
            note: Note,
          }),
        },
      },
      async (request, reply) => {
        const { resource, limit, kind, expires_on: expiresOn, note } = request.body;
        const set = async () =>
          limitAdministration.setOverride(request.staff, request.params.id, {
            resource,
            limit: limit === '' ? null : Number(limit),
            kind,
            expiresAt: expiresOn === '' ? null : parseDay('/body/expires_on', expiresOn),
            reason: note,
          });
        return finish(request, reply, set());
      },
    );

    app.post(
      '/admin/organizations/:id/overrides/remove',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.removeOverride',
          params: ResourceParams,
          body: strictObject({ resource: enumOf(LIMITED_RESOURCES), note: Note }),
        },
      },
      async (request, reply) =>
        finish(
          request,
          reply,
          limitAdministration.removeOverride(request.staff, request.params.id, request.body),
        ),
    );

    app.post(
      '/admin/organizations/:id/extend-grace',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.extendGrace',
          params: ResourceParams,
          body: strictObject({
            days: Type.Unsafe<string>({ type: 'string', maxLength: 4, pattern: '^[1-9]\\d*$' }),
            note: Note,
          }),
        },
      },
      async (request, reply) => {
        const { days, note } = request.body;
        const extend = async () =>
          requireBilling(billingAdministration).extendGrace(request.staff, request.params.id, {
            days: requireDays(Number(days)),
            note,
          });
        return finish(request, reply, extend());
      },
    );

    app.post(
      '/admin/organizations/:id/owner',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.reassignOwner',
          params: ResourceParams,
          body: strictObject({ user_id: text(64), note: Note, leave_without_break_glass: Checked }),
        },
      },
      async (request, reply) => {
        const { user_id: userId, note, leave_without_break_glass: accepted } = request.body;
        const change = { userId: userId.trim(), note, leaveWithoutBreakGlass: accepted === 'on' };
        return finish(request, reply, ownerAdministration.reassign(request.staff, request.params.id, change));
      },
    );
    done();
  };

function requireDays(days: number): number {
  if (days <= MAX_EXTENSION_DAYS) return days;
  throw invalid('/body/days', `must be at most ${MAX_EXTENSION_DAYS}`, 'Extend again later if it is needed.');
}
