import {
  type Attributes,
  type Context,
  context,
  createTraceState,
  INVALID_SPAN_CONTEXT,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/**
 * Spans of OpenTelemetry. Until {@link useTracer} is called, as in processes without a collector, nothing is measured.
 * Names and attributes contain ids, names of code and codes: no address, content, secret or SQL parameter.
 */
export interface SpanDescription {
  name: string;
  kind?: 'server' | 'client' | 'producer' | 'consumer' | 'internal';
  attributes?: Attributes;
  /**
   * A W3C `traceparent` continues that trace, `root` starts one. Otherwise the span belongs to the one in progress; without
   * one there is no span, because sweeps and health checks would only be noise.
   */
  parent?: string | 'root' | undefined;
}

let tracer: Tracer | undefined;

/** Called once a process, before its first span; undefined ends tracing. */
export function useTracer(used: Tracer | undefined): void {
  tracer = used;
}

export const isTracing = (): boolean => tracer !== undefined;

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};
const NO_SPAN = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** Starts a span; undefined if it would have no trace. The caller ends it. */
export function startSpan({
  name,
  kind = 'internal',
  attributes,
  parent,
}: SpanDescription): Span | undefined {
  if (!tracer) return undefined;
  const within = parentContext(parent);
  return (
    within && tracer.startSpan(name, { kind: KINDS[kind], ...(attributes ? { attributes } : {}) }, within)
  );
}

/** Runs `work` in a span. An error gives the span its status and its type; messages may contain addresses. */
export async function withSpan<T>(
  description: SpanDescription,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = startSpan(description);
  if (!span) return work(NO_SPAN);
  try {
    return await context.with(trace.setSpan(context.active(), span), () => work(span));
  } catch (error) {
    markFailed(span, error);
    throw error;
  } finally {
    span.end();
  }
}

export function markFailed(span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttribute('error.type', errorType(error));
}

/** Runs `work` with `span` as the one in progress. */
export function within<T>(span: Span, work: () => T): T {
  return context.with(trace.setSpan(context.active(), span), work);
}

/** The span in progress as a W3C `traceparent`, to store with work that another process continues. */
export function activeTraceparent(): string | undefined {
  const active = tracer && trace.getSpanContext(context.active());
  if (!active || !isSpanContextValid(active)) return undefined;
  return `00-${active.traceId}-${active.spanId}-${active.traceFlags.toString(16).padStart(2, '0')}`;
}

export function activeTraceId(): string | undefined {
  return tracer && trace.getSpanContext(context.active())?.traceId;
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** @returns undefined if the text is no valid `traceparent` of version 00. */
export function parseTraceparent(text: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(text) ?? [];
  const parsed = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(parsed) ? { ...parsed, traceState: createTraceState() } : undefined;
}

function parentContext(parent: SpanDescription['parent']): Context | undefined {
  if (parent === 'root') return ROOT_CONTEXT;
  if (parent === undefined) return trace.getSpanContext(context.active()) && context.active();
  const remote = parseTraceparent(parent);
  return remote && trace.setSpanContext(ROOT_CONTEXT, remote);
}

function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return String(typeof code === 'string' ? code : (name ?? typeof error)).slice(0, 100);
}
