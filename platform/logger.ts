import { type Logger, pino } from 'pino';
import type { Config } from './config.ts';

/** JSON lines on standard output. Nothing logs bodies, addresses or secrets; these paths are a second line. */
export function createLogger(config: Pick<Config, 'LOG_LEVEL'>, processName: string): Logger {
  return pino({
    level: config.LOG_LEVEL,
    base: { process: processName, pid: process.pid },
    redact: ['req.headers.authorization', 'headers.authorization', '*.secret', '*.password', '*.token'],
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
