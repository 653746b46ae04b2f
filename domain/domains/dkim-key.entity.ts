import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { DomainEntity } from './domain.entity.ts';

/**
 * A domain's signing key. `active` signs. `pending` waits until its record is seen and then takes over. `retiring`
 * signs nothing more, but its record still verifies mail on its way. A domain has two selectors, so two keys at most.
 */
export const DkimKeyEntity = defineEntity({
  name: 'DkimKey',
  tableName: 'dkim_keys',
  policies: tenantPolicies(),
  properties: {
    domainId: () => p.manyToOne(DomainEntity).mapToPk().primary().deleteRule('cascade'),
    selector: p.text().primary(),
    organizationId: idColumn().fieldName('org_id'),
    state: p.text().$type<'pending' | 'active' | 'retiring'>(),
    /** SubjectPublicKeyInfo, base64: what the record publishes. */
    publicKey: p.text(),
    /** PKCS#8 PEM, sealed (AES-256-GCM). */
    privateKey: p.blob().hidden(),
    createdAt: createdAt(),
    retiredAt: timestamp().strictNullable(),
  },
});

export type DkimKey = InferEntity<typeof DkimKeyEntity>;
