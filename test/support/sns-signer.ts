import { createSign, randomUUID } from 'node:crypto';
import { generate } from 'selfsigned';
import { buildSnsSigningString, type SnsMessage } from '../../domain/providers/sns-message.ts';

export const SES_TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ses-events';
export const CERTIFICATE_URL =
  'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem';

/** A key and its certificate, in PEM. */
export interface SnsSigner {
  private: string;
  cert: string;
}

/** Valid now, unless other dates are given. */
export async function createSnsSigner(
  validity: { notBeforeDate?: Date; notAfterDate?: Date } = {},
): Promise<SnsSigner> {
  return generate([{ name: 'commonName', value: 'sns.amazonaws.com' }], { keySize: 2048, ...validity });
}

/** The body that SNS posts for a message of a topic. */
export function signSnsMessage(
  signer: SnsSigner,
  message: object | string,
  over: Partial<SnsMessage> = {},
): SnsMessage {
  const unsigned: SnsMessage = {
    Type: 'Notification',
    MessageId: randomUUID(),
    TopicArn: SES_TOPIC,
    Message: typeof message === 'string' ? message : JSON.stringify(message),
    Timestamp: new Date().toISOString(),
    SignatureVersion: '2',
    Signature: '',
    SigningCertURL: CERTIFICATE_URL,
    ...over,
  };
  const sign = createSign(unsigned.SignatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256');
  return {
    ...unsigned,
    Signature: sign.update(buildSnsSigningString(unsigned)).sign(signer.private, 'base64'),
  };
}
