import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { DnsCheck } from '../../domain/domains/dns-check.ts';
import type { DomainService } from '../../domain/domains/domain.service.ts';
import { formatZoneFile } from '../../domain/domains/zone-file.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  CreateDomain,
  DOMAIN_RESPONSE,
  DomainRecordSchema,
  presentDomain,
  UpdateDomain,
} from './domains.schemas.ts';

const DomainQuery = strictObject({
  ...pageQuery,
  verified: Type.Optional(Type.Boolean({ description: 'Only domains that are verified, or are not.' })),
});
const DomainParams = strictObject({ id: id('Domain id (dom_…).') });

export const domainRoutes =
  ({ domains, lists }: { domains: DomainService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/domains',
      {
        config: { permission: 'domains:manage', ...DOMAIN_RESPONSE },
        schema: {
          operationId: 'domains.create',
          summary: 'Add a domain',
          description:
            'Returns the records to publish; the service starts checking DNS for them. A client_id that was used before returns 200 and the existing domain.',
          tags: ['Domains'],
          body: ref(CreateDomain),
          response: { 200: ref(DomainRecordSchema), 201: ref(DomainRecordSchema), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { domain_name, client_id } = request.body;
        const details = await domains.create(request.scope, { domainName: domain_name, clientId: client_id });
        reply.code(details.created ? 201 : 200);
        return presentDomain(details);
      },
    );

    app.get(
      '/domains',
      {
        config: { permission: 'domains:read' },
        schema: {
          operationId: 'domains.list',
          summary: 'List domains',
          tags: ['Domains'],
          querystring: DomainQuery,
          response: { 200: listOf(ref(DomainRecordSchema)), ...problems() },
        },
      },
      async (request) => {
        const page = await domains.list(
          request.scope,
          { verified: request.query.verified },
          lists.read(request),
        );
        return lists.present(request, page, presentDomain);
      },
    );

    app.get(
      '/domains/:id',
      {
        config: { permission: 'domains:read' },
        schema: {
          operationId: 'domains.get',
          summary: 'Get a domain and its records',
          tags: ['Domains'],
          params: DomainParams,
          response: { 200: ref(DomainRecordSchema), ...problems() },
        },
      },
      async (request) => presentDomain(await domains.get(request.scope, request.params.id)),
    );

    app.get(
      '/domains/:id/zone-file',
      {
        config: { permission: 'domains:read' },
        schema: {
          operationId: 'domains.zoneFile',
          summary: 'Get the records as a zone file',
          description: 'In BIND format, which most DNS providers can import.',
          tags: ['Domains'],
          params: DomainParams,
          response: {
            200: {
              description: 'The zone file.',
              content: { 'text/plain': { schema: Type.String({ maxLength: 16_384 }) } },
            },
            ...problems(),
          },
        },
      },
      async (request, reply) => {
        const { domain, records } = await domains.get(request.scope, request.params.id);
        reply.type('text/plain; charset=utf-8');
        return formatZoneFile(domain.domainName, records);
      },
    );

    app.patch(
      '/domains/:id',
      {
        config: { permission: 'domains:manage', ...DOMAIN_RESPONSE },
        schema: {
          operationId: 'domains.update',
          summary: 'Choose the catch-all inbox of a domain',
          description:
            'Only for a verified domain. Mail to postmaster, abuse and the other reserved names is never caught. At most half of the organization’s receive limit is used for such mail.',
          tags: ['Domains'],
          params: DomainParams,
          body: ref(UpdateDomain),
          response: { 200: ref(DomainRecordSchema), ...changeProblems(422) },
        },
      },
      async (request) => {
        const inboxId = request.body.catch_all_inbox_id;
        return presentDomain(await domains.setCatchAll(request.scope, request.params.id, inboxId));
      },
    );

    // DNS is queried before the handler, which runs inside a transaction when there is an Idempotency-Key.
    const dnsChecks = new WeakMap<FastifyRequest, DnsCheck>();
    app.post(
      '/domains/:id/verify',
      {
        config: { permission: 'domains:manage', ...DOMAIN_RESPONSE },
        preHandler: async (request) => {
          const { id: domainId } = request.params as { id: string };
          dnsChecks.set(request, await domains.checkDns(request.scope, domainId));
        },
        schema: {
          operationId: 'domains.verify',
          summary: 'Check the records now',
          description:
            'Queries DNS and returns the result. A failed domain is then checked for another 72 hours.',
          tags: ['Domains'],
          params: DomainParams,
          response: { 200: ref(DomainRecordSchema), ...postProblems() },
        },
      },
      async (request) => {
        const dnsCheck = dnsChecks.get(request) ?? new Map();
        return presentDomain(await domains.verify(request.scope, request.params.id, dnsCheck));
      },
    );

    app.post(
      '/domains/:id/rotate-dkim',
      {
        config: { permission: 'domains:manage', ...DOMAIN_RESPONSE },
        schema: {
          operationId: 'domains.rotateDkim',
          summary: 'Rotate the DKIM key',
          description:
            'The new key becomes active once its record is found; until then the current key signs.',
          tags: ['Domains'],
          params: DomainParams,
          response: { 200: ref(DomainRecordSchema), ...postProblems() },
        },
      },
      async (request) => presentDomain(await domains.rotateDkim(request.scope, request.params.id)),
    );

    app.delete(
      '/domains/:id',
      {
        config: { permission: 'domains:manage' },
        schema: {
          operationId: 'domains.delete',
          summary: 'Delete a domain',
          description: 'Rejected while inboxes use it.',
          tags: ['Domains'],
          params: DomainParams,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async (request, reply) => {
        await domains.delete(request.scope, request.params.id);
        return reply.code(204).send(null);
      },
    );
    done();
  };
