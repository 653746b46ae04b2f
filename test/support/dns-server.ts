import { once } from 'node:events';
import { type AddressInfo, Socket } from 'node:net';
import { createTCPServer, createUDPServer, Packet } from 'dns2';

/** A value of each type. A TXT record of several strings is an array of them. */
export interface DnsValues {
  TXT: string | string[];
  MX: { exchange: string; priority: number };
  A: string;
  AAAA: string;
  CNAME: string;
  PTR: string;
  NS: string;
}

type RecordType = keyof DnsValues;
type Resource = Packet['answers'][number];

/** How queries for a name fail. `silence`: no response, so that the client times out. */
export type DnsFailure = 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED' | 'silence';

/**
 * A DNS server on UDP and TCP of 127.0.0.1. It serves the records that a test sets, follows CNAMEs like a recursive
 * resolver and truncates responses that are too long for UDP. Unknown names are NXDOMAIN; other types of a known name
 * are an empty answer.
 */
export interface DnsServer {
  /** `host:port`, as `DNS_SERVERS` and `Resolver.setServers` take it. */
  readonly address: string;
  /** Queries so far, e.g. `TXT example.com`. */
  readonly questions: string[];
  /** Those of them that came over TCP. */
  readonly questionsOverTcp: string[];
  /** Replaces the name's records of this type. Without values, the name exists but has none of this type. */
  set<Type extends RecordType>(name: string, type: Type, ...values: DnsValues[Type][]): void;
  /** Removes a name with all its records and its failure. */
  remove(name: string): void;
  /** Makes every query for the name fail, until set to `null`. `*` is every name. */
  fail(name: string, failure: DnsFailure | null): void;
  stop(): Promise<void>;
}

/** Real resolvers follow more, but no test has a longer chain. */
const MAX_CNAMES = 8;

export async function startDnsServer(): Promise<DnsServer> {
  const zone = new Map<string, Map<number, Resource[]>>();
  const failures = new Map<string, DnsFailure>();
  const questions: string[] = [];
  const questionsOverTcp: string[] = [];

  const answer = (
    request: Packet,
    send: (response: Packet) => void,
    client: { address?: string } | Socket,
  ): void => {
    const [question] = request.questions;
    if (!question?.name) return;
    const type = question.type ?? Packet.TYPE.ANY;
    const asked = `${Packet.typeName(type)} ${question.name}`;
    questions.push(asked);
    if (client instanceof Socket) questionsOverTcp.push(asked);
    const failure = failures.get(key(question.name)) ?? failures.get('*');
    if (failure === 'silence') return;
    const response = Packet.createResponseFromRequest(request);
    response.header.ra = 1;
    if (failure) response.header.rcode = Packet.RCODE[failure];
    else addAnswers(response, question.name, type);
    send(response);
  };

  function addAnswers(response: Packet, asked: string, type: number): void {
    let name = asked;
    for (let hops = 0; hops < MAX_CNAMES; hops += 1) {
      const records = zone.get(key(name));
      if (!records) response.header.rcode = Packet.RCODE.NXDOMAIN;
      const alias = type === Packet.TYPE.CNAME ? undefined : records?.get(Packet.TYPE.CNAME)?.[0];
      response.answers.push(...(alias ? [alias] : (records?.get(type) ?? [])));
      if (!alias) return;
      name = (alias as unknown as { domain: string }).domain;
    }
  }

  const { port, stop } = await listen(answer);
  return {
    address: `127.0.0.1:${port}`,
    questions,
    questionsOverTcp,
    set(name, type, ...values) {
      const records = zone.get(key(name)) ?? new Map<number, Resource[]>();
      zone.set(key(name), records);
      records.set(
        Packet.TYPE[type],
        values.map((value) => resourceOf(name, type, value)),
      );
    },
    remove(name) {
      zone.delete(key(name));
      failures.delete(key(name));
    },
    fail(name, failure) {
      if (failure === null) failures.delete(key(name));
      else failures.set(key(name), failure);
    },
    stop,
  };
}

const key = (name: string): string => name.toLowerCase().replace(/\.$/, '');

/** No caching: the next query must see the records of its time. */
const TTL_SECONDS = 0;

function resourceOf(name: string, type: RecordType, value: unknown): Resource {
  const base = { name, type: Packet.TYPE[type], class: Packet.CLASS.IN, ttl: TTL_SECONDS };
  const data = {
    TXT: { data: value },
    MX: value,
    A: { address: value },
    AAAA: { address: value },
    NS: { ns: value },
  };
  return { ...base, ...((data as Record<string, object>)[type] ?? { domain: value }) } as Resource;
}

type Answer = (
  request: Packet,
  send: (response: Packet) => void,
  client: { address?: string } | Socket,
) => void;

const TRIES = 20;

/** Listens on the same port for UDP and TCP. The system chooses it for TCP, and it may be in use for UDP. */
async function listen(answer: Answer): Promise<{ port: number; stop: () => Promise<void> }> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const tcp = createTCPServer(answer as never);
    const connections = new Set<Socket>();
    tcp.on('connection', (socket) => connections.add(socket));
    tcp.listen({ port: 0, host: '127.0.0.1' });
    await once(tcp, 'listening');
    const { port } = tcp.address() as AddressInfo;
    const udp = createUDPServer(answer as never);
    const bound = new Promise<boolean>((done) => {
      udp.once('listening', () => done(true));
      udp.once('error', () => done(false));
    });
    udp.bind(port, '127.0.0.1');
    if (await bound) {
      const stop = async () => {
        for (const connection of connections) connection.destroy();
        await Promise.all([
          new Promise<void>((done) => udp.close(() => done())),
          new Promise<void>((done) => tcp.close(() => done())),
        ]);
      };
      return { port, stop };
    }
    tcp.close();
  }
  throw new Error('No port is free for both UDP and TCP');
}
