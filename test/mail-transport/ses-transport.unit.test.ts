import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createSesTransport } from '../../platform/mail-transport/ses-transport.ts';

const RAW = Buffer.from('Subject: Hi\r\n\r\nHello\r\n');
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A fake SES endpoint. */
async function fakeSes(handleRequest: RequestListener) {
  const server = createServer(handleRequest).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return endpoint;
}

function transmit(
  endpoint: string,
  over: { configurationSet?: string; sizeBytes?: number; responseMs?: number } = {},
) {
  const transport = createSesTransport(
    {
      SES_REGION: 'eu-west-1',
      SES_ENDPOINT: endpoint,
      SES_CONFIGURATION_SET: over.configurationSet,
      SES_ACCESS_KEY_ID: 'AKIATEST',
      SES_SECRET_ACCESS_KEY: 'secret',
    },
    { connectMs: 10_000, responseMs: over.responseMs ?? 10_000 },
  );
  closers.push(() => transport.close());
  return transport.transmit({
    sender: 'bounces+x@bounces.agents.test',
    recipient: 'ada@people.example',
    openRaw: async () => Readable.from([RAW]),
    sizeBytes: over.sizeBytes ?? RAW.length,
    envelopeId: 'msg_1.0',
  });
}

describe('SES', () => {
  test('receives exactly the stored bytes for one recipient; its id is recorded', async () => {
    let body: Record<string, unknown> = {};
    const endpoint = await fakeSes(async (request, response) => {
      body = JSON.parse((await buffer(request)).toString());
      response.setHeader('content-type', 'application/json').end('{"MessageId":"0102-ses"}');
    });
    expect(await transmit(endpoint, { configurationSet: 'events' })).toMatchObject({
      kind: 'accepted',
      providerMessageId: '0102-ses',
      reportsDelivery: true,
    });
    expect(body).toEqual({
      ConfigurationSetName: 'events',
      Destination: { ToAddresses: ['ada@people.example'] },
      Content: { Raw: { Data: RAW.toString('base64') } },
    });
  });

  test.each([
    [400, 'MessageRejected', 'refused'],
    [400, 'BadRequestException', 'refused'],
    [429, 'TooManyRequestsException', 'deferred'],
    [400, 'LimitExceededException', 'deferred'],
    [400, 'SendingPausedException', 'deferred'],
    [400, 'MailFromDomainNotVerifiedException', 'deferred'],
    [403, 'UnrecognizedClientException', 'deferred'],
    [503, 'ServiceUnavailable', 'deferred'],
    [500, 'InternalFailure', 'ambiguous'],
  ])('with the response %s %s makes the message %s after one request', async (status, type, kind) => {
    let requests = 0;
    const endpoint = await fakeSes((_request, response) => {
      requests += 1;
      response.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type });
      response.end('{"message":"no"}');
    });
    expect(await transmit(endpoint)).toMatchObject({ kind });
    expect(requests).toBe(1);
  });

  test('disconnecting or not responding makes the message ambiguous without a second request', async () => {
    for (const misbehave of [(request: { destroy(): void }) => request.destroy(), () => {}]) {
      let requests = 0;
      const endpoint = await fakeSes((request) => {
        requests += 1;
        request.resume().once('end', () => misbehave(request.socket));
      });
      expect(await transmit(endpoint, { responseMs: 500 })).toMatchObject({ kind: 'ambiguous' });
      expect(requests).toBe(1);
    }
  });

  test('being unreachable defers the message', async () => {
    expect(await transmit('http://127.0.0.1:1')).toMatchObject({ kind: 'deferred' });
  });

  test('never receives a truncated message', async () => {
    expect(await transmit('http://127.0.0.1:1', { sizeBytes: 5 })).toMatchObject({ kind: 'deferred' });
  });
});
