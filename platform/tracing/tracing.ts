import { DiagLogLevel, diag, type HrTime, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { Resource } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { readVersion } from '../telemetry.ts';
import { parseTraceparent, useTracer } from './span.ts';

export type TracingConfig = Pick<
  Config,
  | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  | 'OTEL_EXPORTER_OTLP_HEADERS'
  | 'OTEL_SERVICE_NAME'
  | 'OTEL_RESOURCE_ATTRIBUTES'
  | 'OTEL_TRACES_SAMPLER'
  | 'OTEL_TRACES_SAMPLER_ARG'
>;

/** A span that ended elsewhere, in the workflow sandbox. */
export interface FinishedSpan {
  name: string;
  spanId: string;
  /** W3C `traceparent` of its parent. */
  parent: string;
  startMs: number;
  endMs: number;
  isError: boolean;
  attributes: Record<string, string>;
}

export interface Tracing {
  export(span: FinishedSpan): void;
  /** Sends the remaining spans, within two seconds. */
  stop(): Promise<void>;
}

const SCOPE = 'agent-email';
const FLUSH_TIMEOUT_MS = 2_000;

/**
 * Starts to send spans to the collector. Call it once a process, before it opens connections.
 *
 * @returns undefined if none is configured: then nothing is measured.
 */
export function startTracing(
  config: TracingConfig,
  { process, logger }: { process: string; logger: Logger },
): Tracing | undefined {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return undefined;
  reportExportErrors(logger);
  const resource = new Resource({
    'service.name': config.OTEL_SERVICE_NAME ?? `agent-email-${process}`,
    'service.version': readVersion(),
    ...parsePairs(config.OTEL_RESOURCE_ATTRIBUTES),
  });
  const processor = new BatchSpanProcessor(
    new OTLPTraceExporter({
      url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
      headers: parsePairs(config.OTEL_EXPORTER_OTLP_HEADERS),
    }),
  );
  const provider = new NodeTracerProvider({
    resource,
    sampler: createSampler(config),
    spanProcessors: [processor],
  });
  provider.register();
  useTracer(provider.getTracer(SCOPE));
  return {
    export(span) {
      const finished = toReadableSpan(span, resource);
      if (finished) processor.onEnd(finished);
    },
    async stop() {
      useTracer(undefined);
      const timer = Promise.withResolvers<void>();
      const timeout = setTimeout(timer.resolve, FLUSH_TIMEOUT_MS);
      await Promise.race([provider.shutdown().catch(() => undefined), timer.promise]);
      clearTimeout(timeout);
    },
  };
}

function createSampler({
  OTEL_TRACES_SAMPLER: name,
  OTEL_TRACES_SAMPLER_ARG: ratio,
}: TracingConfig): Sampler {
  const samplers = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const root = samplers[name.replace('parentbased_', '') as keyof typeof samplers]();
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

/** `name=value,name=value`, percent-encoded, as the OpenTelemetry variables have it. */
function parsePairs(text = ''): Record<string, string> {
  const pairs = text.split(',').flatMap((pair) => {
    const [name = '', ...value] = pair.split('=');
    return name.trim() === '' ? [] : [[name.trim(), decodeURIComponent(value.join('=').trim())]];
  });
  return Object.fromEntries(pairs);
}

function reportExportErrors(logger: Logger): void {
  const ignore = () => undefined;
  const warn = (message: string) =>
    logger.warn({ detail: message.slice(0, 500) }, 'traces were not exported');
  diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN);
}

const toHrTime = (ms: number): HrTime => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)];

/** @returns undefined if the trace is not sampled. */
function toReadableSpan(span: FinishedSpan, resource: Resource) {
  const parent = parseTraceparent(span.parent);
  if (!parent || (parent.traceFlags & 1) === 0) return undefined;
  const spanContext = { traceId: parent.traceId, spanId: span.spanId, traceFlags: parent.traceFlags };
  return {
    name: span.name,
    kind: SpanKind.INTERNAL,
    spanContext: () => spanContext,
    parentSpanId: parent.spanId,
    startTime: toHrTime(span.startMs),
    endTime: toHrTime(span.endMs),
    duration: toHrTime(span.endMs - span.startMs),
    status: { code: span.isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: span.attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationLibrary: { name: SCOPE },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
