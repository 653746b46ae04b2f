import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { enumOf, id, strictObject, text } from '../../api/schemas.ts';
import type { ActorNameService } from '../../domain/audit/actor-names.ts';
import type { AuditLogService } from '../../domain/audit/audit-log.service.ts';
import type { DomainStatus } from '../../domain/domains/domain.entity.ts';
import type { DomainDetails, DomainService } from '../../domain/domains/domain.service.ts';
import { withFindings } from '../../domain/domains/domain-records.ts';
import { formatZoneFile } from '../../domain/domains/zone-file.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { listQuery, OrganizationQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { DOMAIN_BADGES, describeChange, describeRecord, summarize } from './domain-words.ts';

export interface DomainPageDependencies {
  pages: Pages;
  domains: DomainService;
  inboxes: InboxService;
  auditLog: AuditLogService;
  actorNames: ActorNameService;
}

const DomainParams = strictObject({ id: id('Domain id (dom_…).') });
/** What each choice of the filter asks for. */
const STATES = { verified: { verified: true }, unverified: { verified: false } } as const;
const DomainsQuery = listQuery({
  state: Type.Optional(enumOf(['', ...Object.keys(STATES)] as ('' | keyof typeof STATES)[])),
});
const NO_FIELDS = strictObject({});
const HISTORY = { limit: 20, order: 'desc' } as const;
/** Offered for choice; any other can be typed. */
const INBOXES_OFFERED = { limit: 100, order: 'desc' } as const;

/** Domains, with each record as it should be and as it is. */
export const domainPages =
  ({ pages, domains, inboxes, auditLog, actorNames }: DomainPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const pathOf = (request: FastifyRequest, domainId: string) => pages.link(request, `/domains/${domainId}`);

    async function showList(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { state } = request.query as Static<typeof DomainsQuery>;
      const filter = state ? STATES[state] : {};
      const page = await domains.list(request.scope, filter, pages.readPage(request, { limit: 50 }));
      return pages.send(request, reply, {
        template: 'domains/domains',
        title: 'Domains',
        problem,
        data: {
          domains: page.items.map((details) => describe(details)),
          inboxNames: await actorNames.find(
            request.scope,
            page.items.map(({ domain }) => domain.catchAllInboxId),
          ),
          state,
          next: pages.nextPage(request, page),
        },
        apiCall: { path: '/domains', query: { ...filter } },
      });
    }

    async function showDomain(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const { id: domainId } = request.params as { id: string };
      const details = await domains.get(scope, domainId);
      const { domain } = details;
      const mayManage = scope.permissions.has('domains:manage') && !scope.impersonation;
      const history = scope.permissions.has('audit:read')
        ? await auditLog.list(scope, { resourceType: 'domain', resourceId: domainId }, HISTORY)
        : undefined;
      const offered = mayManage ? (await inboxes.list(scope, {}, INBOXES_OFFERED)).items : [];
      const names = await actorNames.find(scope, [domain.catchAllInboxId]);
      return pages.send(request, reply, {
        template: 'domains/domain',
        title: domain.domainName,
        problem,
        data: {
          ...describe(details),
          history: history?.items.map(describeChange),
          offered: offered.map(({ email }) => email),
          catchAll: names.get(domain.catchAllInboxId ?? ''),
        },
        apiCall: { path: `/domains/${domainId}` },
      });
    }

    app.get(
      '/domains',
      {
        config: { permission: 'domains:read' },
        schema: { operationId: 'pages.domains', querystring: DomainsQuery },
      },
      (request, reply) => showList(request, reply),
    );

    pages.form(app, '/domains', {
      config: { permission: 'domains:manage' },
      schema: { operationId: 'pages.createDomain', body: strictObject({ domain_name: text(300) }) },
      work: ({ scope, body }) => domains.create(scope, { domainName: body.domain_name.trim() }),
      show: showList,
      done: (request, reply, { domain }) => pages.seeOther(reply, pathOf(request, domain.id), 'domain-added'),
    });

    app.get(
      '/domains/:id',
      {
        config: { permission: 'domains:read' },
        schema: { operationId: 'pages.domain', params: DomainParams, querystring: OrganizationQuery },
      },
      (request, reply) => showDomain(request, reply),
    );

    app.get(
      '/domains/:id/records',
      {
        config: { permission: 'domains:read' },
        schema: { operationId: 'pages.domainRecords', params: DomainParams, querystring: OrganizationQuery },
      },
      async (request, reply) => {
        const details = await domains.get(request.scope, request.params.id);
        return reply
          .type('text/html; charset=utf-8')
          .header('cache-control', 'no-store')
          .send(pages.part(request, 'domains/records', describe(details)));
      },
    );

    app.get(
      '/domains/:id/zone-file',
      {
        config: { permission: 'domains:read' },
        schema: { operationId: 'pages.domainZoneFile', params: DomainParams, querystring: OrganizationQuery },
      },
      async (request, reply) => {
        const { domain, records } = await domains.get(request.scope, request.params.id);
        return reply
          .type('text/plain; charset=utf-8')
          .header('content-disposition', `attachment; filename="${domain.domainName}.zone"`)
          .send(formatZoneFile(domain.domainName, records));
      },
    );

    pages.form(app, '/domains/:id/verify', {
      config: { permission: 'domains:manage' },
      schema: { operationId: 'pages.verifyDomain', params: DomainParams, body: NO_FIELDS },
      work: async ({ scope, params }) =>
        domains.verify(scope, params.id, await domains.checkDns(scope, params.id)),
      show: showDomain,
      done: (request, reply, { domain }) =>
        pages.seeOther(
          reply,
          pathOf(request, domain.id),
          domain.verificationStatus === 'verified' ? 'domain-verified' : 'domain-checked',
        ),
    });

    pages.form(app, '/domains/:id/rotate-dkim', {
      config: { permission: 'domains:manage' },
      schema: { operationId: 'pages.rotateDkim', params: DomainParams, body: NO_FIELDS },
      work: ({ scope, params }) => domains.rotateDkim(scope, params.id),
      show: showDomain,
      done: (request, reply, { domain }) =>
        pages.seeOther(reply, pathOf(request, domain.id), 'dkim-key-made'),
    });

    pages.form(app, '/domains/:id/catch-all', {
      config: { permission: 'domains:manage' },
      schema: {
        operationId: 'pages.setCatchAll',
        params: DomainParams,
        body: strictObject({ inbox: text(320) }),
      },
      work: async ({ scope, params, body }) => {
        const email = body.inbox.trim();
        if (email === '') return domains.setCatchAll(scope, params.id, null);
        const { items } = await inboxes.list(scope, { email }, { limit: 1, order: 'desc' });
        const [inbox] = items;
        if (!inbox)
          throw invalid('/body/inbox', 'is not an inbox here', 'Enter the address of one of your inboxes.');
        return domains.setCatchAll(scope, params.id, inbox.id);
      },
      show: showDomain,
      done: (request, reply, { domain }) => pages.seeOther(reply, pathOf(request, domain.id), 'saved'),
    });

    pages.form(app, '/domains/:id/delete', {
      config: { permission: 'domains:manage' },
      schema: { operationId: 'pages.deleteDomain', params: DomainParams, body: NO_FIELDS },
      work: ({ scope, params }) => domains.delete(scope, params.id),
      show: showDomain,
      done: (request, reply) => pages.seeOther(reply, pages.link(request, '/domains'), 'domain-deleted'),
    });
    done();
  };

function describe({ domain, records }: DomainDetails) {
  const views = withFindings(domain, records).map((record) =>
    describeRecord(record, domain.lastCheckedAt !== null),
  );
  return {
    domain,
    badge: DOMAIN_BADGES[domain.verificationStatus as DomainStatus],
    records: views,
    summary: summarize(domain, views),
    /** The service looks the records up again by itself, so the page does, too. */
    isAwaiting: domain.nextCheckAt !== null,
    awaitsKey: views.some(({ keyState }) => keyState === 'pending'),
  };
}
