import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Logger } from 'pino';
import type { ServiceMetrics } from './service-metrics.ts';

export interface CertificateFiles {
  keyFile: string;
  certFile: string;
}

/** A private key with the certificate chain for it, in PEM. */
export interface TlsCertificate {
  key: Buffer;
  cert: Buffer;
  /** Of the first certificate, the server's own. */
  expiresAt: Date;
}

/** The certificate of a listener, and where it is from. */
export interface ListenerCertificate {
  files: CertificateFiles;
  current: TlsCertificate;
}

/** How often the files are read. Renewals replace links and mounted folders, which are no reliable events to watch for. */
const CHECK_INTERVAL_MS = 60_000;

/** @throws Error if a file cannot be read, or the key is not that of the certificate. */
export async function readTlsCertificate({ keyFile, certFile }: CertificateFiles): Promise<TlsCertificate> {
  const [key, cert] = await Promise.all([readFile(keyFile), readFile(certFile)]);
  createSecureContext({ key, cert });
  return { key, cert, expiresAt: new Date(new X509Certificate(cert).validTo) };
}

export interface CertificateWatchOptions extends ListenerCertificate {
  listener: 'inbound' | 'submission';
  /** Uses another one, for new connections. */
  use(certificate: TlsCertificate): void;
  logger: Pick<Logger, 'info' | 'error'>;
  metrics?: Pick<ServiceMetrics, 'tlsCertificates'> | undefined;
  intervalMs?: number | undefined;
}

/**
 * Uses the certificate of the files when they change, without a restart. Files that cannot be used leave the present one in
 * place; the log and the metric say so until they can.
 *
 * @returns stops it.
 */
export function watchTlsCertificate({
  listener,
  files,
  current,
  use,
  logger,
  metrics,
  intervalMs = CHECK_INTERVAL_MS,
}: CertificateWatchOptions): () => void {
  let used = current;
  let problem: string | undefined;
  let isChecking = false;

  function report(): void {
    metrics?.tlsCertificates.expiry.set({ listener }, used.expiresAt.getTime() / 1_000);
    metrics?.tlsCertificates.unusable.set({ listener }, problem === undefined ? 0 : 1);
  }

  async function check(): Promise<void> {
    try {
      const found = await readTlsCertificate(files);
      problem = undefined;
      if (found.key.equals(used.key) && found.cert.equals(used.cert)) return;
      use(found);
      used = found;
      logger.info({ listener, expiresAt: found.expiresAt }, 'TLS certificate replaced');
    } catch (error) {
      const { message } = error as Error;
      if (message !== problem)
        logger.error(
          { err: error, listener, files },
          'the TLS certificate on disk cannot be used; the one in use stays',
        );
      problem = message;
    }
  }

  report();
  const timer = setInterval(() => {
    if (isChecking) return;
    isChecking = true;
    void check().finally(() => {
      isChecking = false;
      report();
    });
  }, intervalMs).unref();
  return () => clearInterval(timer);
}
