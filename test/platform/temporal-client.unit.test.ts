import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createTemporalClient } from '../../platform/temporal.ts';

/** Longer than the delay of the client's first retries. */
const RETRIES_MS = 1_000;

const createClient = (port: number) =>
  createTemporalClient({
    TEMPORAL_ADDRESS: `127.0.0.1:${port}`,
    TEMPORAL_NAMESPACE: 'default',
    TEMPORAL_TLS: false,
    TEMPORAL_API_KEY: undefined,
  });

/** A server that takes connections and, while it is silent, answers nothing. */
async function startServer(isSilent: boolean) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    if (!isSilent) socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test.each([
  ['is in progress', true],
  ['waits for its next attempt', false],
])('a call that %s when the client closes fails, and is not tried again', async (_name, isSilent) => {
  const server = await startServer(isSilent);
  const client = createClient(server.port);
  const outcome = client.workflow
    .getHandle('a-run')
    .describe()
    .then(
      () => 'answered',
      () => 'failed',
    );
  await pause(RETRIES_MS / 4);
  await client.connection.close();
  // An attempt on a closed connection throws in a timer, which would end the process.
  await pause(RETRIES_MS);
  server.stop();
  expect(await outcome).toBe('failed');
});

test('a call after the client has closed fails', async () => {
  const client = createClient(1);
  await client.connection.close();
  await expect(client.workflow.getHandle('a-run').describe()).rejects.toMatchObject({
    cause: { details: 'Channel has been shut down' },
  });
});
