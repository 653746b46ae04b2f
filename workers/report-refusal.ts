import type { Logger } from 'pino';
import type { RefusalDirection, RefusalStage } from '../domain/refusals/refusal.entity.ts';
import type { RefusalRecorder } from '../domain/refusals/refusal-recorder.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import { SmtpError } from './smtp-data.ts';

/** A command of an SMTP client that was refused. */
export interface RefusedCommand {
  stage: RefusalStage;
  /** Whose refusal it is: the recipient's, or that of an email client's login. Unknown before either. */
  affected: readonly { address: string; recipient: string | null }[];
  /** Envelope sender; null before MAIL. */
  sender: string | null;
  session: { id: string; remoteAddress: string };
  error: unknown;
}

export type ReportRefusal = (refused: RefusedCommand) => void;

/**
 * Reports each refusal as one log line without addresses, one count by reason, and a row of the organization it concerns.
 */
export function createRefusalReports({
  direction,
  logger,
  metrics,
  recorder,
}: {
  direction: RefusalDirection;
  logger: Logger;
  metrics: Pick<ServiceMetrics, 'refusals'>;
  recorder: Pick<RefusalRecorder, 'record'>;
}): ReportRefusal {
  return ({ stage, affected, sender, session, error }) => {
    if (!(error instanceof SmtpError)) return;
    const { reason, responseCode, message: response } = error;
    logger.info(
      { direction, stage, reason, responseCode, session: session.id, clientIp: session.remoteAddress },
      'mail refused',
    );
    metrics.refusals.inc({ direction, stage, reason });
    for (const { address, recipient } of affected) {
      const clientIp = session.remoteAddress;
      recorder.record({
        direction,
        stage,
        reason,
        responseCode,
        response,
        address,
        recipient,
        sender,
        clientIp,
      });
    }
  };
}
