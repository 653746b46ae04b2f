import { expect, jest, test } from '@jest/globals';
import nodemailer from 'nodemailer';
import { type Answer, apiClient, type Call } from '../support/client.ts';
import { openStream } from '../support/live-stream.ts';
import { sharedService } from '../support/service.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

const service = sharedService();
const baseUrl = `${service.base_url}/api/v1`;
const call: Call = apiClient(service, service.api_key);

jest.setTimeout(60_000);

test('a message received over SMTP reaches a stream and a waiting call within a second', async () => {
  const { body: inbox } = await call('POST', '/inboxes', {});
  const { body: other } = await call('POST', '/inboxes', {});
  const transport = nodemailer.createTransport({ ...service.inbound_smtp, secure: false, ignoreTLS: true });
  const deliver = async (to: Answer, subject: string): Promise<number> => {
    await transport.sendMail({
      from: 'Ada <ada@people.example>',
      to: to.email,
      subject,
      text: 'Your code: 1',
    });
    return performance.now();
  };
  const stream = await openStream(baseUrl, {
    token: service.api_key,
    query: `?types=message.received&inbox_id=${inbox.id}`,
  });
  try {
    const wait = async (since = '') => {
      const path = `/inboxes/${inbox.id}/messages/wait?timeout_seconds=30${since}`;
      const { status, body } = await call('GET', path);
      expect(status).toBe(200);
      return { body, at: performance.now() };
    };
    // The first message is the warm-up and the starting point of the measured call.
    await deliver(inbox, 'First');
    const [first] = await stream.received(1);
    const firstId = String(first?.data.data.message_id);
    const waiting = wait(`&since=${firstId}&from=ada@people.example&subject=code`);
    await deliver(other, 'Your code, elsewhere');
    const accepted = await deliver(inbox, 'Your code');
    const [, event] = await stream.received(2);
    const eventAt = performance.now();
    const found = await waiting;
    expect(found.body).toMatchObject({
      inbox_id: inbox.id,
      subject: 'Your code',
      extracted_text: 'Your code: 1',
    });
    expect(event?.data).toMatchObject({ type: 'message.received', data: { message_id: found.body.id } });
    // Without the signal, both would take 5 s.
    expect(eventAt - accepted).toBeLessThan(1_000 * TIME_FACTOR);
    expect(found.at - accepted).toBeLessThan(1_000 * TIME_FACTOR);
  } finally {
    stream.close();
    transport.close();
  }
});
