import { randomInt } from 'node:crypto';
import { createConnection, createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/**
 * Below the ephemeral ports of the system (Linux: from 32768), so that no outgoing connection takes a port that was
 * found here before it is used.
 */
const FIRST_PORT = 15_000;
const LAST_PORT = 30_000;
/** All processes but the workers of Jest, which each have a range of their own behind it. */
const SHARED_RANGE = 5_000;
const WORKER_RANGE = 1_000;
const WORKER_RANGES = (LAST_PORT - FIRST_PORT - SHARED_RANGE) / WORKER_RANGE;

/** What a test starts inherits the id, and is no worker. */
const workerId = /[\\/]jest[^\\/]*[\\/]/.test(process.argv[1] ?? '') ? process.env.JEST_WORKER_ID : undefined;
const range =
  workerId === undefined
    ? { first: FIRST_PORT, size: SHARED_RANGE }
    : {
        first: FIRST_PORT + SHARED_RANGE + (Number(workerId) % WORKER_RANGES) * WORKER_RANGE,
        size: WORKER_RANGE,
      };

let offset = randomInt(range.size);
/** Ports that something else of this process will use. */
const promised = new Set<number>();

/**
 * Finds a port that nothing listens on. A test may stop what listens on its ports and start it again: no other process takes
 * them meanwhile, and this one returns every other port of its range first. Ports given to {@link assertPortsFree} are left out.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < range.size; tries += 1) {
    offset = (offset + 1) % range.size;
    // Other calls may move on meanwhile.
    const port = range.first + offset;
    if (!promised.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`No free port found from ${range.first} on`);
}

/**
 * An address for a server that only this process may find. Linux routes all of 127.0.0.0/8 to the machine; other systems
 * only 127.0.0.1.
 */
export function pickLoopbackAddress(platform: NodeJS.Platform = process.platform): string {
  if (platform !== 'linux') return LOOPBACK;
  return `127.${randomInt(1, 255)}.${randomInt(0, 256)}.${randomInt(1, 255)}`;
}

export interface RequiredPort {
  port: number;
  /** What will listen there, for the error message. */
  purpose: string;
  /** The environment variable that changes it. */
  variable: string;
}

/**
 * @throws Error naming each port that is taken (or required twice), what requires it and the variable that changes it.
 */
export async function assertPortsFree(wanted: RequiredPort[]): Promise<void> {
  const problems: string[] = [];
  const seen = new Map<number, RequiredPort>();
  for (const entry of wanted) {
    const twin = seen.get(entry.port);
    if (twin) problems.push(`Port ${entry.port} is wanted by both ${twin.variable} and ${entry.variable}.`);
    else if (!(await isFree(entry.port)))
      problems.push(
        `Port ${entry.port} (${entry.purpose}) is taken: stop what listens there, or set ${entry.variable} to another port.`,
      );
    seen.set(entry.port, entry);
    promised.add(entry.port);
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

/** Binding alone is not enough: a listener on the wildcard address lets a loopback bind pass on some systems. */
async function isFree(port: number): Promise<boolean> {
  return (await canBind(port)) && !(await acceptsConnections(port));
}

function canBind(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, LOOPBACK, () => probe.close(() => resolve(true)));
  });
}

/** Whether something accepts connections on the port. */
export function acceptsConnections(port: number, timeoutMs = 1000): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: LOOPBACK, port });
    const finish = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(timeoutMs, () => finish(false));
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
  });
}
