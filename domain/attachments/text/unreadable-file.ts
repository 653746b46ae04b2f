/** A file whose text cannot be read. The reason and the fix are for the caller, and never quote the file. */
export class UnreadableFileError extends Error {
  readonly fix: string;

  constructor(reason: string, fix: string = DOWNLOAD) {
    super(reason);
    this.name = 'UnreadableFileError';
    this.fix = fix;
  }
}

export const DOWNLOAD =
  'Download the file with GET /api/v1/attachments/{id}, or ask the sender for the content as text.';
