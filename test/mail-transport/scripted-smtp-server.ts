import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Points of the SMTP session at which the script may deviate. */
export type Step = 'connect' | 'ehlo' | 'mail' | 'rcpt' | 'data' | 'body' | 'dot' | 'answered';

/** `drop` closes the socket, `finish` only its sending half, `reset` sends RST, `hang` never replies; any other string is the reply. */
export type Deviation = 'drop' | 'finish' | 'reset' | 'hang' | (string & {});

export interface Script {
  extensions?: string[];
  step?: Step;
  deviation?: Deviation;
  /** Replaces the 250 reply with a queue id. */
  finalAnswer?: string;
}

const FINAL_DOT = Buffer.from('\r\n.\r\n');

/** A relay that follows its script and counts the messages it received up to the final dot. */
export class ScriptedSmtpServer {
  readonly completedMessages: Buffer[] = [];
  readonly commands: string[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #script: Script;

  constructor(script: Script = {}) {
    this.#script = script;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Waits until every connection is closed; after a `finish`, the client has detected the end. */
  async hungUp(): Promise<void> {
    await Promise.all([...this.#sockets].map((socket) => once(socket, 'close')));
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(socket: Socket): void {
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    const say = (line: string) => socket.write(`${line}\r\n`);
    let line = '';
    let accepted = false;
    let body: Buffer[] | null = null;
    let bodyBytes = 0;

    /** Runs the script for this step. Returns true if the script has handled the step. */
    const deviates = (step: Step): boolean => {
      const { step: at, deviation } = this.#script;
      if (at !== step || deviation === undefined) return false;
      if (deviation === 'drop') socket.destroy();
      else if (deviation === 'finish') socket.end();
      else if (deviation === 'reset') socket.resetAndDestroy();
      else if (deviation === 'hang') socket.pause();
      else say(deviation);
      return true;
    };

    const onCommand = (command: string): void => {
      this.commands.push(command);
      const verb = command.slice(0, 4).toUpperCase();
      if (verb === 'EHLO' && !deviates('ehlo')) {
        const extensions = (this.#script.extensions ?? []).map((name) => `250-${name}`);
        say(['250-relay.test', ...extensions, '250 HELP'].join('\r\n'));
      } else if (verb === 'HELO') deviates('ehlo');
      else if (verb === 'MAIL' && !deviates('mail')) say('250 2.1.0 Ok');
      else if (verb === 'RCPT') {
        accepted = !deviates('rcpt');
        if (accepted) say('250 2.1.5 Ok');
      } else if (verb === 'DATA' && !accepted) say('554 5.5.1 no valid recipients');
      else if (verb === 'DATA' && !deviates('data')) {
        body = [];
        bodyBytes = 0;
        say('354 go ahead');
      } else if (verb === 'RSET') say('250 2.0.0 Ok');
      else if (verb === 'QUIT') socket.end('221 2.0.0 Bye\r\n');
    };

    /** A client waits for the reply to its final dot, so the dot ends the received data. */
    const onBody = (parts: Buffer[]): void => {
      if (bodyBytes > 1_000 && deviates('body')) return;
      const tail = Buffer.concat(parts.slice(-2));
      if (!tail.subarray(-5).equals(FINAL_DOT)) return;
      this.completedMessages.push(Buffer.concat(parts).subarray(0, -3));
      body = null;
      if (deviates('dot')) return;
      say(this.#script.finalAnswer ?? '250 2.0.0 Ok: queued as 4XYZ123');
      deviates('answered');
    };

    socket.on('data', (chunk: Buffer) => {
      if (body) {
        body.push(chunk);
        bodyBytes += chunk.length;
        onBody(body);
        return;
      }
      const lines = (line + chunk.toString('latin1')).split('\r\n');
      line = lines.pop() ?? '';
      for (const command of lines) if (!socket.destroyed && !socket.isPaused()) onCommand(command);
    });
    if (!deviates('connect')) say('220 relay.test ESMTP');
  }
}
