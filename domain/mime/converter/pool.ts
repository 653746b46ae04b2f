import { type Child, createChildPool, limitTime } from '../../../platform/child-pool.ts';
import { AppError } from '../../../platform/errors.ts';
import { type Frame, readFrames, sendFrame } from '../../../platform/frames.ts';
import { MAX_HTML_CHARACTERS } from '../html-to-text.ts';
import type { NewTextOptions } from '../new-text.ts';
import type { SanitizeOptions } from '../sanitize-html.ts';
import { type Conversion, convert, FRAME } from './convert.ts';

export interface HtmlConverter {
  /** Organizations share the processes. */
  forOrganization(id: string): HtmlConversions;
  close(): Promise<void>;
}

/** Rewrites HTML of any size without blocking the event loop for long. */
export interface HtmlConversions {
  /** See `sanitizeHtml`. */
  sanitize(html: string, options: SanitizeOptions): Promise<string>;
  /** See `htmlToText`. */
  toText(html: string): Promise<string>;
  /** See `readNewText`. */
  toNewText(body: string, options: NewTextOptions): Promise<string>;
}

/** The process that converts was killed, because of a hostile message or because the machine has too little memory or time. */
export class ConversionStoppedError extends AppError {
  constructor(reason: string) {
    super('unavailable', {
      detail: 'The HTML of the message could not be converted.',
      fix: 'Repeat the request in a minute. If it fails again, write a new message: POST /api/v1/inboxes/{id}/messages.',
      cause: new Error(`HTML was not converted: ${reason}`),
    });
  }
}

export interface HtmlConverterOptions {
  /** The script that runs `runConverterChild` on its standard input and output. */
  entry: string;
  /** Maximum number of concurrent conversions. Processes start on demand. */
  processes: number;
}

/**
 * HTML up to this length is converted in the calling process, which takes at most about 20 ms. Most messages are longer
 * only because of their quoted history.
 */
const MAX_INLINE_CHARACTERS = 8 * 1024;
/** A conversion has up to three steps with a limit of 5 s. A process that takes longer is stuck or gets no processor time. */
const TIME_LIMIT = { timeoutMs: 30_000, minCpuMs: 10_000, checks: 3 };
const MAX_JOBS_PER_PROCESS = 2_000;
const MAX_RESIDENT_BYTES = 256 * 1024 * 1024;
const NODE_OPTIONS = ['--max-old-space-size=192', '--max-semi-space-size=2', '--no-warnings'];

/** Converts short HTML in this process, and longer HTML in child processes. */
export function createHtmlConverter({ entry, processes }: HtmlConverterOptions): HtmlConverter {
  const pool = createChildPool({
    name: 'HTML converters',
    entry,
    nodeOptions: NODE_OPTIONS,
    maxProcesses: processes,
    maxJobsPerProcess: MAX_JOBS_PER_PROCESS,
    maxResidentBytes: MAX_RESIDENT_BYTES,
  });
  const framesOf = new WeakMap<Child, AsyncGenerator<Frame, void>>();
  const run = async (organizationId: string, html: string, conversion: Conversion): Promise<string> => {
    // The conversion truncates longer HTML. One additional character lets it detect that.
    const source = html.slice(0, MAX_HTML_CHARACTERS + 1);
    if (source.length <= MAX_INLINE_CHARACTERS) return convert(source, conversion);
    return pool.run(organizationId, async (child) => {
      const frames = framesOf.get(child) ?? readFrames(child.output);
      framesOf.set(child, frames);
      const limit = limitTime(child, TIME_LIMIT);
      try {
        await sendFrame(child.input, FRAME.conversion, Buffer.from(JSON.stringify(conversion)));
        await sendFrame(child.input, FRAME.source, Buffer.from(source));
        const { value: frame } = await frames.next();
        if (frame) return frame.payload.toString();
        throw new ConversionStoppedError(child.killReason ?? 'the process ended');
      } finally {
        limit.stop();
      }
    });
  };
  return {
    forOrganization: (id) => ({
      sanitize: (html, options) => run(id, html, { to: 'html', ...options }),
      toText: (html) => run(id, html, { to: 'text' }),
      toNewText: (body, options) => run(id, body, { to: 'newText', ...options }),
    }),
    close: () => pool.close(),
  };
}
