import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy in front of an API that loses answers, and whose API may be replaced by another one. */
export class CuttingProxy implements AsyncDisposable {
  /** So many next answers are lost: the request is delivered, and the connection is cut at the first byte of the answer. */
  answersToLose = 0;
  #target: URL;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => this.#connect(socket));

  private constructor(target: string) {
    this.#target = new URL(target);
  }

  static async start(target: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** New connections go to another API. */
  retarget(target: string): void {
    this.#target = new URL(target);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #connect(client: Socket): void {
    const service = connect(Number(this.#target.port), this.#target.hostname);
    const end = () => {
      client.destroy();
      service.destroy();
      this.#sockets.delete(client);
    };
    this.#sockets.add(client);
    for (const socket of [client, service]) socket.on('error', end).on('close', end);
    client.pipe(service);
    service.on('data', (chunk) => {
      if (this.answersToLose === 0) return client.write(chunk);
      this.answersToLose--;
      return end();
    });
  }
}
