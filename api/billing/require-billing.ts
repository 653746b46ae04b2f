import type { FastifyInstance } from 'fastify';
import { AppError } from '../../platform/errors.ts';

/** @throws AppError `feature_disabled` without billing. */
export function requireBilling<Service>(service: Service | undefined): Service {
  if (service) return service;
  throw new AppError('feature_disabled', {
    detail: 'This service does not use billing.',
    fix: 'Nothing has to be paid. The operator can switch it on with BILLING_ENABLED.',
  });
}

/** Says so before anything is said about the body, which would be useless advice. */
export function refuseWithoutBilling(app: FastifyInstance, service: object | undefined): void {
  if (!service)
    app.addHook('preParsing', async () => {
      requireBilling(service);
    });
}
