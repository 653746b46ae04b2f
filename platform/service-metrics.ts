import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Counters of what the service does, across all organizations. No label names a tenant. */
export interface ServiceMetrics {
  /** Recorded events by type: rates of bounces and complaints. */
  readonly events: Counter<'type'>;
  readonly webhookAttempts: Counter<'outcome'>;
  /** Refused SMTP commands. */
  readonly refusals: Counter<'direction' | 'stage' | 'reason'>;
  /** Answered calls that are not in the list of calls: too many, or the database failed. */
  readonly droppedRequests: Counter;
  /** Received messages whose parser failed. */
  readonly parseFailures: Counter;
  /** Calls that start or signal a workflow. */
  readonly temporalCalls: Histogram<'outcome'>;
  /** Failed runs, by the type of their failure, which Temporal's own metric does not have. */
  readonly workflowFailures: Counter<'workflow_type' | 'failure_type'>;
  /** Certificates of the SMTP listeners that have one. */
  readonly tlsCertificates: { expiry: Gauge<'listener'>; unusable: Gauge<'listener'> };
  /** Adds them to the metrics of the process. */
  register(registry: Registry): void;
}

export function createServiceMetrics(): ServiceMetrics {
  const registers: Registry[] = [];
  const events = new Counter({
    name: 'agent_email_events_total',
    help: 'Recorded events, by type.',
    labelNames: ['type'],
    registers,
  });
  // A series that starts with its first event would hide that one from rate().
  for (const type of RATED_EVENTS) events.inc({ type }, 0);
  const webhookAttempts = new Counter({
    name: 'agent_email_webhook_attempts_total',
    help: 'Attempts to deliver webhooks, by outcome: delivered, failed (an error response), unreachable, blocked.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of ['delivered', 'failed', 'unreachable', 'blocked'])
    webhookAttempts.inc({ outcome }, 0);
  const refusals = new Counter({
    name: 'agent_email_refused_total',
    help: 'Refused SMTP commands, by direction, command and reason.',
    labelNames: ['direction', 'stage', 'reason'],
    registers,
  });
  const droppedRequests = new Counter({
    name: 'agent_email_request_log_dropped_total',
    help: 'Answered calls that GET /requests does not list, because there were too many or the database failed.',
    registers,
  });
  const parseFailures = new Counter({
    name: 'agent_email_parse_failures_total',
    help: 'Received messages whose parser failed.',
    registers,
  });
  const workflowFailures = new Counter({
    name: 'agent_email_workflow_failures_total',
    help: 'Failed workflow runs, by type of workflow and failure. HeldBySuspension: the run waits for its release.',
    labelNames: ['workflow_type', 'failure_type'],
    registers,
  });
  const temporalCalls = new Histogram({
    name: 'agent_email_temporal_call_seconds',
    help: 'Time to start or signal a workflow, by outcome.',
    labelNames: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const tlsCertificates = {
    expiry: new Gauge({
      name: 'agent_email_tls_certificate_expiry_timestamp_seconds',
      help: 'When the TLS certificate that an SMTP listener uses expires.',
      labelNames: ['listener'],
      registers,
    }),
    unusable: new Gauge({
      name: 'agent_email_tls_certificate_unusable',
      help: '1 while the files of the TLS certificate of an SMTP listener cannot be used, so that it keeps the one before.',
      labelNames: ['listener'],
      registers,
    }),
  };
  const { expiry, unusable } = tlsCertificates;
  return {
    tlsCertificates,
    ...{ events, webhookAttempts, refusals, droppedRequests, parseFailures, workflowFailures, temporalCalls },
    register(registry) {
      for (const metric of [
        ...[
          events,
          webhookAttempts,
          refusals,
          droppedRequests,
          parseFailures,
          workflowFailures,
          temporalCalls,
        ],
        ...[expiry, unusable],
      ])
        registry.registerMetric(metric as Counter);
    },
  };
}

const RATED_EVENTS = ['message.sent', 'message.bounced', 'message.complained', 'message.received'];
