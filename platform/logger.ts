import { destination, type Logger, type LoggerOptions, pino } from 'pino';
import type { Config } from './config.ts';
import { activeTraceId } from './tracing/span.ts';

/** A system call for each line costs more than the line. What a killed process had not yet written is lost. */
const WRITE_BYTES = 4_096;
const WRITE_EVERY_MS = 100;
/** If the reader of the output is too slow, further lines are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * JSON lines on standard output, at most 100 ms late: a fatal line and the end of the process write at once. No code logs bodies, addresses or secrets; redaction is a second line of defense.
 *
 * @param readContext ids that every line carries, such as those of the activity in progress.
 */
export function createLogger(
  config: Pick<Config, 'LOG_LEVEL'>,
  processName: string,
  readContext: () => object = () => ({}),
): Logger {
  const options: LoggerOptions = {
    level: config.LOG_LEVEL,
    base: { process: processName, pid: process.pid },
    redact: ['req.headers.authorization', 'headers.authorization', '*.secret', '*.password', '*.token'],
    timestamp: pino.stdTimeFunctions.isoTime,
    mixin: () => ({ ...readContext(), traceId: activeTraceId() }),
  };
  const output = destination({
    sync: false,
    minLength: WRITE_BYTES,
    periodicFlush: WRITE_EVERY_MS,
    maxLength: MAX_WAITING_BYTES,
  });
  return pino(options, output);
}

/** Turns what Node itself would print as text into log lines: warnings, and the error that ends the process. */
export function logProcessEvents(logger: Logger): void {
  process.removeAllListeners('warning');
  process.on('warning', (warning) => logger.warn({ err: warning }, 'warning of the runtime'));
  process.on('uncaughtException', (error) => {
    logger.fatal({ err: error }, 'uncaught error');
    process.exit(1);
  });
}

/** Logs why a process did not start, and ends it. The configuration may be what is wrong, so this does not need it. */
export function failStart(processName: string, error: unknown): never {
  createLogger({ LOG_LEVEL: 'info' }, processName).fatal({ err: error }, 'the process did not start');
  process.exit(1);
}
