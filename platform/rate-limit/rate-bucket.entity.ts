import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../database/columns.ts';

/** A token bucket shared by all API processes, which lease blocks of tokens from it. */
export const RateBucketEntity = defineEntity({
  name: 'RateBucket',
  tableName: 'rate_buckets',
  properties: {
    /** Credential or organization id. */
    id: p.text().primary(),
    tokens: p.double(),
    refilledAt: timestamp(),
  },
});

export type RateBucket = InferEntity<typeof RateBucketEntity>;
