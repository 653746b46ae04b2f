import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startChild } from './child-process.ts';
import { type HostGuard, startHostGuard } from './host-guard.ts';
import { findFreePort } from './ports.ts';
import { waitUntil } from './wait.ts';

const MAILDEV = fileURLToPath(new URL('../../node_modules/maildev/dist/bin/maildev.js', import.meta.url));

export interface MailUiOptions {
  /** Messages are kept here across restarts. */
  directory: string;
  webPort: number;
  logFile: string;
  pidFile?: string;
  /** Maximum number of messages kept; older ones are deleted first. Default 1000. */
  maxMails?: number;
  /** Aborts the start. */
  signal?: AbortSignal;
}

export interface MailUi {
  readonly url: string;
  /** Port of its SMTP listener, which takes the messages to show. */
  readonly smtpPort: number;
  readonly exited: Promise<string>;
  stop(): Promise<void>;
}

const WEB_USER = 'host-guard';

/**
 * Starts maildev's web inbox; all listeners are bound to 127.0.0.1. Browsers reach it through a guard against other
 * websites, which alone knows the password.
 */
export async function startMailUi(options: MailUiOptions): Promise<MailUi> {
  const { directory, webPort, maxMails = 1000 } = options;
  mkdirSync(directory, { recursive: true });
  const smtpPort = await findFreePort();
  const upstream = { host: '127.0.0.1', port: await findFreePort() };
  const url = `http://127.0.0.1:${webPort}`;
  const password = randomBytes(24).toString('base64url');
  const authorization = `Basic ${Buffer.from(`${WEB_USER}:${password}`).toString('base64')}`;
  const child = await startChild({
    name: 'The mail UI',
    command: process.execPath,
    args: [
      MAILDEV,
      '--smtp',
      String(smtpPort),
      '--web',
      String(upstream.port),
      // By default it listens on every address of the machine.
      '--ip',
      '127.0.0.1',
      '--web-ip',
      '127.0.0.1',
      '--mail-directory',
      directory,
      '--max-emails',
      String(maxMails),
      '--silent',
    ],
    // It reads MAILDEV_* variables and configuration files from the folder it is started in.
    env: { NODE_NO_WARNINGS: '1', MAILDEV_WEB_USER: WEB_USER, MAILDEV_WEB_PASS: password },
    cwd: directory,
    logFile: options.logFile,
    pidFile: options.pidFile,
  });
  let guard: HostGuard | undefined;
  const stop = async () => {
    await child.stop();
    await guard?.stop();
  };
  try {
    guard = await startHostGuard({ port: webPort, upstream, headers: { authorization } });
    await waitUntil(() => assertHealthy(url), {
      what: 'The mail UI',
      timeoutMs: 30_000,
      failed: child.failure,
      signal: options.signal,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, smtpPort, exited: child.exited, stop };
}

async function assertHealthy(url: string): Promise<void> {
  const answer = await fetch(`${url}/api/healthz`, { signal: AbortSignal.timeout(1000) });
  if (!answer.ok) throw new Error(`returned ${answer.status}`);
}
