import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { startTracing, type Tracing } from '../../platform/tracing/tracing.ts';
import { eventually } from '../support/eventually.ts';
import { connectTools } from '../support/mcp-client.ts';
import { createOrganization } from '../support/organizations.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { TraceCollector } from '../support/trace-collector.ts';

const collector = new TraceCollector();
let tracing: Tracing | undefined;
let app: TestApp;
beforeAll(async () => {
  tracing = startTracing(
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: await collector.start(),
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: 1,
    },
    { process: 'test', logger: pino({ level: 'silent' }) },
  );
  // Spans are made only by an app that is built while traces are on.
  app = await startTestApp();
});
afterAll(async () => {
  await Promise.all([app?.close(), tracing?.stop()]);
  await collector.stop();
});

test('the operation of a tool call belongs to the trace of the request to /mcp', async () => {
  const { token, organizationId } = await createOrganization(app.worker);
  const tools = await connectTools(app, token);
  await tools.call('list_inboxes');
  await tools.close();
  await tracing?.stop();
  await eventually(() => {
    const operation = collector.spans.find(({ name }) => name === 'GET /api/v1/inboxes');
    const request = collector.spans.find(({ spanId }) => spanId === operation?.parentSpanId);
    expect(request?.name).toBe('POST /mcp');
    expect(operation?.traceId).toBe(request?.traceId);
    expect(operation?.attributes).toMatchObject({
      'agent_email.organization_id': organizationId,
      'agent_email.request_id': request?.attributes['agent_email.request_id'],
    });
  });
  expect(collector.received).not.toContain(token);
});
