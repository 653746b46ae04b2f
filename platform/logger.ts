import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';

/** JSON lines on standard output. No code logs bodies, addresses or secrets; redaction is a second line of defense. */
export function createLogger(config: Pick<Config, 'LOG_LEVEL'>, processName: string): Logger {
  return pino({
    level: config.LOG_LEVEL,
    base: { process: processName, pid: process.pid },
    redact: ['req.headers.authorization', 'headers.authorization', '*.secret', '*.password', '*.token'],
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
