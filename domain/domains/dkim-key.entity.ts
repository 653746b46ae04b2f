import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { DomainEntity } from './domain.entity.ts';

/**
 * A domain's signing key. `active`: signs. `pending`: becomes active once its record is found. `retiring`: no longer signs,
 * but its record still verifies messages in transit. A domain has two selectors, so at most two keys.
 */
export const DkimKeyEntity = defineEntity({
  name: 'DkimKey',
  tableName: 'dkim_keys',
  policies: tenantPolicies(),
  properties: {
    domainId: () =>
      p.manyToOne(DomainEntity).mapToPk().fieldName('domain_id').primary().deleteRule('cascade'),
    selector: p.text().primary(),
    organizationId: idColumn().fieldName('org_id'),
    state: p.text().$type<'pending' | 'active' | 'retiring'>(),
    /** SubjectPublicKeyInfo in base64, as the record publishes it. */
    publicKey: p.text(),
    /** PKCS#8 PEM, sealed (AES-256-GCM). */
    privateKey: p.blob().hidden(),
    createdAt: createdAt(),
    retiredAt: timestamp().strictNullable(),
  },
});

export type DkimKey = InferEntity<typeof DkimKeyEntity>;
