import { buffer } from 'node:stream/consumers';
import { SESv2Client, SendEmailCommand } from '@aws-sdk/client-sesv2';
import type { Config } from '../config.ts';
import type { MailTransport, Transmission, TransmissionResult } from './mail-transport.ts';
import { MAX_RESPONSE_CHARACTERS } from './smtp-reply.ts';

export type SesTransportConfig = Pick<
  Config,
  'SES_REGION' | 'SES_CONFIGURATION_SET' | 'SES_ENDPOINT' | 'SES_ACCESS_KEY_ID' | 'SES_SECRET_ACCESS_KEY'
>;

/** Fields SES writes anew, whatever stood there: what is signed must leave them out. Lower case. */
export const SES_OVERWRITTEN_FIELDS = ['message-id', 'date'];

const DEFAULT_TIMEOUTS = { connectMs: 10_000, answerMs: 120_000 };

/**
 * Hands mail to Amazon SES (API v2, raw), one recipient a request. SES writes its own envelope sender, Message-ID and
 * Date; what becomes of the mail it tells by its own id (`POST /api/v1/providers/ses/notifications`).
 */
export function createSesTransport(config: SesTransportConfig, timeouts = DEFAULT_TIMEOUTS): MailTransport {
  const { SES_ACCESS_KEY_ID: accessKeyId, SES_SECRET_ACCESS_KEY: secretAccessKey } = config;
  const client = new SESv2Client({
    region: config.SES_REGION,
    ...(config.SES_ENDPOINT ? { endpoint: config.SES_ENDPOINT } : {}),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    // The SDK would send again where an answer was lost. Trying again is the workflow's decision alone.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: timeouts.connectMs,
      requestTimeout: timeouts.answerMs,
      throwOnRequestTimeout: true,
    },
  });
  const inFlight = new Set<Promise<TransmissionResult>>();

  async function send(transmission: Transmission): Promise<TransmissionResult> {
    const raw = await readMessage(transmission);
    if (!Buffer.isBuffer(raw)) return raw;
    const { recipient, signal } = transmission;
    try {
      const { MessageId } = await client.send(
        new SendEmailCommand({
          Destination: { ToAddresses: [recipient] },
          Content: { Raw: { Data: raw } },
          ...(config.SES_CONFIGURATION_SET ? { ConfigurationSetName: config.SES_CONFIGURATION_SET } : {}),
        }),
        signal ? { abortSignal: signal } : {},
      );
      return {
        kind: 'accepted',
        providerMessageId: MessageId ?? null,
        response: `SES accepted ${MessageId ?? 'without an id'}`,
        reportsDelivery: config.SES_CONFIGURATION_SET !== undefined,
      };
    } catch (error) {
      return classifyFailure(error);
    }
  }

  return {
    name: 'ses',
    transmit(transmission) {
      const sending = send(transmission).finally(() => inFlight.delete(sending));
      inFlight.add(sending);
      return sending;
    },
    async close() {
      await Promise.race([
        Promise.allSettled(inFlight),
        new Promise((end) => setTimeout(end, 10_000).unref()),
      ]);
      client.destroy();
    },
  };
}

/** SES takes a mail as one body. Nothing has left while it is read. */
async function readMessage({ openRaw, sizeBytes }: Transmission): Promise<Buffer | TransmissionResult> {
  try {
    const raw = await buffer(await openRaw());
    if (raw.length === sizeBytes) return raw;
    const response = `The stored message has ${raw.length} bytes, ${sizeBytes} were expected`;
    return { kind: 'deferred', statusCode: null, response };
  } catch (cause) {
    return { kind: 'deferred', statusCode: null, response: 'The stored message could not be read', cause };
  }
}

/** SES looked at the mail and will never take it. */
const REFUSALS = new Set(['MessageRejected', 'BadRequestException']);
/** No request was made: there was no connection to make it on. */
const CONNECTION_ERROR =
  /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_)/;

interface SdkError {
  name?: string;
  message?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

function classifyFailure(cause: unknown): TransmissionResult {
  const { name = 'Error', message = '', code = '', $metadata } = cause as SdkError;
  const status = $metadata?.httpStatusCode;
  const response = `${name}: ${message}`.slice(0, MAX_RESPONSE_CHARACTERS);
  if (REFUSALS.has(name)) return { kind: 'refused', scope: 'message', statusCode: '5.7.1', response };
  // Throttled, paused, or something of ours an operator mends (credentials, an identity): SES took nothing.
  if (status !== undefined && ((status >= 400 && status < 500) || status === 503))
    return { kind: 'deferred', statusCode: status === 429 ? '4.7.1' : null, response, cause };
  if (
    status === undefined &&
    (CONNECTION_ERROR.test(`${code} ${message}`) || name === 'CredentialsProviderError')
  )
    return { kind: 'deferred', statusCode: null, response, cause };
  // The answer was lost, or says nothing of what was done.
  return { kind: 'ambiguous', response, cause };
}
