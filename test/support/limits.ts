import type { LimitService, NewOverride } from '../../domain/usage/limit.service.ts';

/** Sets what an organization is allowed of something: hard and until it is changed, where nothing else is said. */
export function allowOnly(
  limits: Pick<LimitService, 'setOverride'>,
  organizationId: string,
  override: Pick<NewOverride, 'limited' | 'limit'> & Partial<NewOverride>,
): Promise<void> {
  return limits.setOverride(
    organizationId,
    { kind: 'hard', expiresAt: null, reason: 'Test', ...override },
    'support@example.com',
  );
}
