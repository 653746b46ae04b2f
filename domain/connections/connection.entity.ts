import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import type { Permission } from '../identity/permissions.ts';
import type { SessionFactor, SessionMethod } from '../identity/person.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { UserEntity } from '../people/user.entity.ts';

/** Why a connection ended. `sign_out`: with the sessions of its person. `unused`: none of its tokens works. */
export const CONNECTION_ENDS = ['person', 'client', 'reuse', 'membership', 'sign_out', 'unused'] as const;
export type ConnectionEnd = (typeof CONNECTION_ENDS)[number];

/** What a person granted to a client (RFC 6749): a credential for `/mcp`. Rows of ended connections stay for 90 days. */
export const ConnectionEntity = defineEntity({
  name: 'Connection',
  tableName: 'connections',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['userId', 'id'] },
    { properties: ['endedAt'] },
    { properties: ['clientId'] },
  ],
  uniques: [{ properties: ['requestHash'] }],
  checks: [{ name: 'connections_end_reason', expression: oneOf('end_reason', CONNECTION_ENDS) }],
  triggers: [
    functionTrigger({
      name: 'signal_connections_access',
      table: 'connections',
      event: 'update',
      when: 'old.ended_at is distinct from new.ended_at',
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Null: every environment of the organization. */
    environmentId: () =>
      p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').strictNullable().deleteRule('cascade'),
    /** Null: every inbox of the environment. */
    inboxId: () =>
      p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').strictNullable().deleteRule('cascade'),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** Hash of the id of the request for authorization: one request makes one connection. */
    requestHash: p.blob().strictNullable(),
    /** A registered id, or the URL of a metadata document. */
    clientId: p.text(),
    /** As the client calls itself. */
    clientName: p.text(),
    /** Origin or scheme of the address to which the client's codes were sent. */
    redirectTo: p.text(),
    /** A call has those that the person has, too. */
    permissions: p.array().$type<Permission[]>(),
    /** How the person proved who they are when they consented. Policies of the organization look at it on each call. */
    method: p.text().$type<SessionMethod>(),
    factors: p.array().$type<SessionFactor[]>(),
    /** No foreign key: the connection is refused when the configuration is no longer active. */
    ssoConfigurationId: idColumn().strictNullable(),
    authenticatedAt: timestamp(),
    expiresAt: timestamp(),
    /** Updated at most once a minute. */
    lastUsedAt: timestamp().strictNullable(),
    endedAt: timestamp().strictNullable(),
    endReason: p.text().$type<ConnectionEnd>().strictNullable(),
    createdAt: createdAt(),
  },
});

export type Connection = InferEntity<typeof ConnectionEntity>;

/** A client that registered itself (RFC 7591). Clients with a metadata document have no row. */
export const ConnectionClientEntity = defineEntity({
  name: 'ConnectionClient',
  tableName: 'connection_clients',
  indexes: [{ properties: ['networkHash', 'createdAt'] }, { properties: ['lastUsedAt'] }],
  properties: {
    idHash: p.blob().primary(),
    /** Without the id. */
    metadata: json(p.json().$type<Record<string, unknown>>()),
    /** Hash of the network that registered it. */
    networkHash: p.blob(),
    /** When a token was last issued to it; null if a person never granted it anything. */
    lastUsedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

/** What the authorization server keeps under a secret value. */
export const CONNECTION_TOKEN_KINDS = [
  'interaction',
  'authorization_code',
  'access_token',
  'refresh_token',
] as const;
export type ConnectionTokenKind = (typeof CONNECTION_TOKEN_KINDS)[number];

/** Requests for authorization, codes and tokens, under the hash of their value. */
export const ConnectionTokenEntity = defineEntity({
  name: 'ConnectionToken',
  tableName: 'connection_tokens',
  indexes: [
    { properties: ['connectionId'] },
    { properties: ['expiresAt'] },
    {
      name: 'connection_tokens_network_index',
      expression: `create index "connection_tokens_network_index" on "connection_tokens" ("network_hash") where "network_hash" is not null`,
    },
  ],
  checks: [{ name: 'connection_tokens_kind', expression: oneOf('kind', CONNECTION_TOKEN_KINDS) }],
  properties: {
    tokenHash: p.blob().primary(),
    kind: p.text().$type<ConnectionTokenKind>(),
    /** Null for a request that no person has granted yet. */
    connectionId: () =>
      p
        .manyToOne(ConnectionEntity)
        .mapToPk()
        .fieldName('connection_id')
        .strictNullable()
        .deleteRule('cascade'),
    /** Hash of the network that made a request for authorization; null for codes and tokens. */
    networkHash: p.blob().strictNullable(),
    /** As the authorization server describes it, without the value. */
    payload: json(p.json().$type<Record<string, unknown>>()),
    /** When a code was exchanged or a refresh token rotated; null: not yet. */
    consumedAt: timestamp().strictNullable(),
    expiresAt: timestamp(),
    createdAt: createdAt(),
  },
});
