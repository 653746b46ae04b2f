import type { MailTransport } from '../mail-transport/mail-transport.ts';
import { withSpan } from './span.ts';

/** Gives each transaction with the relay a span. The relay's response may repeat an address, so it is no part of it. */
export function traceTransport(transport: MailTransport): MailTransport {
  return {
    name: transport.name,
    close: () => transport.close(),
    transmit: (transmission) =>
      withSpan(
        {
          name: `${transport.name} transmit`,
          kind: 'client',
          attributes: { 'agent_email.envelope_id': transmission.envelopeId },
        },
        async (span) => {
          const result = await transport.transmit(transmission);
          span.setAttribute('agent_email.outcome', result.kind);
          if ('statusCode' in result && result.statusCode)
            span.setAttribute('smtp.status_code', result.statusCode);
          return result;
        },
      ),
  };
}
