import { parseArgs } from 'node:util';
import { startParsingAgain } from '../domain/inbound/parse-again.service.ts';
import { InstallationError } from '../platform/installation/installation-error.ts';
import { runCommand } from './run-command.ts';
import { runOutboxCommand } from './run-outbox-command.ts';

/**
 * `npm run mail:parse-again [-- --message msg_…]`: starts a workflow for each message that could not be parsed, after the
 * cause is gone (a newer version, more memory), and for each message in which this version finds codes and links that an
 * earlier one did not look for.
 */
runCommand('mail:parse-again', () => {
  const { message: messageId } = parseArgs({ options: { message: { type: 'string' } } }).values;
  return runOutboxCommand(async ({ database, outbox }) => {
    const started = await startParsingAgain(
      { database, outbox },
      messageId === undefined ? {} : { messageId },
    );
    if (started === 0 && messageId !== undefined)
      throw new InstallationError(
        `${messageId} is not a received message with a parse_error, or parsed by an earlier version`,
      );
    return `Started ${started} run(s) of parseAgain; WorkflowType = "parseAgain" lists them in the Temporal UI.`;
  });
});
