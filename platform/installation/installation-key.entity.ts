import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf } from '../database/columns.ts';

export type InstallationKeyKind = 'encryption' | 'signing';

/**
 * A key with which values of this database are encrypted or signed. It holds an id derived from the key, so that a process
 * with another key notices it at its start.
 */
export const InstallationKeyEntity = defineEntity({
  name: 'InstallationKey',
  tableName: 'installation_keys',
  checks: [{ name: 'installation_keys_kind', expression: oneOf('kind', ['encryption', 'signing']) }],
  properties: {
    kind: p.text().$type<InstallationKeyKind>().primary(),
    keyId: p.text().primary(),
    createdAt: createdAt(),
  },
});

export type InstallationKey = InferEntity<typeof InstallationKeyEntity>;
