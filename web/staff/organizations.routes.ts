import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { requireBilling } from '../../api/billing/require-billing.ts';
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
import type { AppError } from '../../platform/errors.ts';
import type { Page } from '../../platform/pagination.ts';
import { MAX_EXTENSION_DAYS } from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { NumberField, OptionalText, readNumber, requireNumber } from '../shell/forms.ts';
import { counterName } from '../usage/counters.ts';
import { Checked, type Console, NoticeQuery, ResourceParams, staffListQuery } from './console.ts';
import { filled } from './filters.ts';

export interface OrganizationConsoleDependencies {
  console: Console;
  organizationDirectory: OrganizationDirectoryService;
  organizationDetails: OrganizationDetailsService;
  suspensionAdministration: SuspensionAdministrationService;
  limitAdministration: LimitAdministrationService;
  ownerAdministration: OwnerAdministrationService;
  /** Undefined if the service does not use billing. */
  billingAdministration: BillingAdministrationService | undefined;
}

const TOP_LIMIT = 25;
const LATEST = { limit: 20, order: 'desc' } as const;
/** Suspensions in force. */
const LISTED = { limit: 100, order: 'desc' } as const;

/** What JSON does not round: as the API, the form takes no larger number. */
const MAX_LIMIT = 999_999_999_999_999;

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
    const { console, organizationDirectory, organizationDetails } = dependencies;
    const { suspensionAdministration, limitAdministration, ownerAdministration, billingAdministration } =
      dependencies;

    app.get(
      '/admin/organizations',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.organizations',
          querystring: staffListQuery({
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
                console.readPage(request),
              )
            : await organizationDirectory.search(staff, q, console.readPage(request));
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
            counterName,
            nextPage: page && console.nextPage(request, page),
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
          counterName,
          resources: LIMITED_RESOURCES.map((resource) => [resource, counterName(resource)]),
          kinds: LIMIT_KINDS,
          billing: await billingAdministration?.get(staff, id),
          maxExtensionDays: MAX_EXTENSION_DAYS,
        },
      });
    };
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
      console.form(app, `/admin/organizations/:id/${action}`, {
        config: { staff: 'admin' },
        schema: { operationId: `console.${action}`, params: ResourceParams, body: TargetForm },
        work: ({ staff, params, body: { target_type: type, target_id: id, reason, note } }) =>
          suspensionAdministration.change(
            staff,
            action,
            { type, id: id.trim(), organizationId: params.id },
            { reason, note },
          ),
        show,
      });

    console.form(app, '/admin/organizations/:id/tier', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.setTier',
        params: ResourceParams,
        body: strictObject({ tier: enumOf(TIERS), note: Note }),
      },
      work: ({ staff, params, body }) => limitAdministration.setTier(staff, params.id, body),
      show,
    });

    console.form(app, '/admin/organizations/:id/overrides', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.setOverride',
        params: ResourceParams,
        body: strictObject({
          resource: enumOf(LIMITED_RESOURCES),
          limit: text(20),
          kind: enumOf(LIMIT_KINDS),
          expires_at: text(10),
          note: Note,
        }),
      },
      work: async ({ staff, params, body: { resource, limit, kind, expires_at: expiresOn, note } }) =>
        limitAdministration.setOverride(staff, params.id, {
          resource,
          limit: readNumber('limit', limit, { min: 0, max: MAX_LIMIT }),
          kind,
          expiresAt: expiresOn === '' ? null : parseDay('/body/expires_at', expiresOn),
          reason: note,
        }),
      show,
    });

    console.form(app, '/admin/organizations/:id/overrides/remove', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.removeOverride',
        params: ResourceParams,
        body: strictObject({ resource: enumOf(LIMITED_RESOURCES), note: Note }),
      },
      work: ({ staff, params, body }) => limitAdministration.removeOverride(staff, params.id, body),
      show,
    });

    console.form(app, '/admin/organizations/:id/extend-grace', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.extendGrace',
        params: ResourceParams,
        body: strictObject({ days: NumberField, note: Note }),
      },
      work: async ({ staff, params, body: { days, note } }) =>
        requireBilling(billingAdministration).extendGrace(staff, params.id, {
          days: requireNumber('days', days, { min: 1, max: MAX_EXTENSION_DAYS }),
          note,
        }),
      show,
    });

    console.form(app, '/admin/organizations/:id/owner', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.reassignOwner',
        params: ResourceParams,
        body: strictObject({ user_id: text(64), note: Note, leave_without_break_glass: Checked }),
      },
      work: ({ staff, params, body: { user_id: userId, note, leave_without_break_glass: accepted } }) =>
        ownerAdministration.reassign(staff, params.id, {
          userId: userId.trim(),
          note,
          leaveWithoutBreakGlass: accepted === 'on',
        }),
      show,
    });
    done();
  };
