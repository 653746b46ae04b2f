import { FRAME } from '../../domain/mime/parser/protocol.ts';
import { readFrames, writeFrame } from '../../platform/frames.ts';

/** A parser process that sends a header and then misbehaves as the message specifies. */
const retainedBuffers: Buffer[] = [];
/** Longer than the limits of the tests. */
const SLEEP_MS = 8_000;
for await (const { type, payload } of readFrames(process.stdin)) {
  if (type !== FRAME.raw) continue;
  await writeFrame(process.stdout, FRAME.header, Buffer.from('{"subject":"Sent before"}'));
  const misbehavior = payload.toString();
  if (misbehavior === 'grow') for (;;) retainedBuffers.push(Buffer.alloc(8 * 1024 * 1024, 1));
  if (misbehavior === 'spin') for (;;);
  if (misbehavior === 'sleep') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLEEP_MS);
  if (misbehavior === 'sleep' || misbehavior === 'behave') {
    await writeFrame(process.stdout, FRAME.done, Buffer.from('{"hasText":false,"hasHtml":false}'));
    continue;
  }
  if (misbehavior === 'break a file off') {
    await writeFrame(process.stdout, FRAME.file, Buffer.from('{"filename":"f","contentType":"a/b"}'));
    await writeFrame(process.stdout, FRAME.fileBytes, Buffer.from('half a fi'));
  }
  process.exit(3);
}
