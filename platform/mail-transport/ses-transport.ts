import { buffer } from 'node:stream/consumers';
import { SESv2Client, SendEmailCommand } from '@aws-sdk/client-sesv2';
import type { Config } from '../config.ts';
import type { MailTransport, Transmission, TransmissionResult } from './mail-transport.ts';
import { MAX_RESPONSE_CHARACTERS } from './smtp-reply.ts';

export type SesTransportConfig = Pick<
  Config,
  'SES_REGION' | 'SES_CONFIGURATION_SET' | 'SES_ENDPOINT' | 'SES_ACCESS_KEY_ID' | 'SES_SECRET_ACCESS_KEY'
>;

/** Header fields, in lower case, that SES overwrites: a signature must not cover them. */
export const SES_OVERWRITTEN_FIELDS = ['message-id', 'date'];

const DEFAULT_TIMEOUTS = { connectMs: 10_000, responseMs: 120_000 };

/**
 * Sends raw messages through Amazon SES (API v2), one recipient per request. SES sets its own envelope sender,
 * Message-ID and Date, and reports outcomes by its own id (`POST /api/v1/providers/ses/notifications`).
 */
export function createSesTransport(config: SesTransportConfig, timeouts = DEFAULT_TIMEOUTS): MailTransport {
  const { SES_ACCESS_KEY_ID: accessKeyId, SES_SECRET_ACCESS_KEY: secretAccessKey } = config;
  const client = new SESv2Client({
    region: config.SES_REGION,
    ...(config.SES_ENDPOINT ? { endpoint: config.SES_ENDPOINT } : {}),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    // The SDK would resend after a lost response. Only the workflow decides about retries.
    maxAttempts: 1,
    requestHandler: {
      connectionTimeout: timeouts.connectMs,
      requestTimeout: timeouts.responseMs,
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
        response: `SES accepted the message ${MessageId ? `as ${MessageId}` : 'without an id'}`,
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

/** Reads the complete message, because the SES API accepts it only as one body. If reading fails, nothing is sent. */
async function readMessage({ openRaw, sizeBytes }: Transmission): Promise<Buffer | TransmissionResult> {
  try {
    const raw = await buffer(await openRaw());
    if (raw.length === sizeBytes) return raw;
    const response = `The stored message has ${raw.length} bytes; expected ${sizeBytes}`;
    return { kind: 'deferred', statusCode: null, response };
  } catch (cause) {
    return { kind: 'deferred', statusCode: null, response: 'The stored message could not be read', cause };
  }
}

/** SES examined the message and will never accept it. */
const REFUSALS = new Set(['MessageRejected', 'BadRequestException']);
/** No request was sent, because there was no connection. */
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
  // Throttled, paused, or a configuration error that an operator fixes (credentials, identity): nothing was accepted.
  if (status !== undefined && ((status >= 400 && status < 500) || status === 503))
    return { kind: 'deferred', statusCode: status === 429 ? '4.7.1' : null, response, cause };
  if (
    status === undefined &&
    (CONNECTION_ERROR.test(`${code} ${message}`) || name === 'CredentialsProviderError')
  )
    return { kind: 'deferred', statusCode: null, response, cause };
  // The response was lost, or does not say whether the message was accepted.
  return { kind: 'ambiguous', response, cause };
}
