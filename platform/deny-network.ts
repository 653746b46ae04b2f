import { Socket as DatagramSocket } from 'node:dgram';
import { Socket } from 'node:net';

/**
 * Makes every connection of this process fail, for processes that read untrusted files and need none: a library that follows
 * a link in a file cannot reach anything. Names are resolved only in order to connect. Needed until the permission model of
 * Node.js (`--permission`) covers the network, which it does from version 25.
 */
export function denyNetwork(): void {
  const refuse = (): never => {
    throw new Error('This process has no network');
  };
  Socket.prototype.connect = refuse;
  DatagramSocket.prototype.bind = refuse;
  DatagramSocket.prototype.connect = refuse;
  DatagramSocket.prototype.send = refuse;
}
