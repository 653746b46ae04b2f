import type { LimitService, NewOverride } from '../../domain/usage/limit.service.ts';

/** Overrides an organization's limit; by default hard and without expiry. */
export function setLimit(
  limits: Pick<LimitService, 'setOverride'>,
  organizationId: string,
  override: Pick<NewOverride, 'resource' | 'limit'> & Partial<NewOverride>,
): Promise<void> {
  return limits.setOverride(
    organizationId,
    { kind: 'hard', expiresAt: null, reason: 'Test', ...override },
    'support@example.com',
  );
}
