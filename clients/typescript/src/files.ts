import type { AttachmentInput } from './generated/types.ts';

/** A file: `new File([bytes], 'invoice.pdf')`, `await openAsBlob('invoice.pdf')` with a name, or bytes or text with a name. */
export type FileInput =
  | File
  | {
      filename: string;
      content: Blob | Uint8Array | ArrayBuffer | string;
      /** Default: that of the Blob, otherwise application/octet-stream. */
      content_type?: string | undefined;
      /** For `<img src="cid:…">` in the HTML. */
      content_id?: string | undefined;
    };

/** Files up to this size together stand in the request itself; the others are uploaded first. */
export const INLINE_BYTES = 1_048_576;

interface NamedBlob {
  blob: Blob;
  filename: string;
  contentId: string | undefined;
}

function read(file: FileInput): NamedBlob {
  if (file instanceof Blob) return { blob: file, filename: file.name, contentId: undefined };
  const { content, filename, content_id: contentId } = file;
  const type = file.content_type ?? (content instanceof Blob ? content.type : '');
  return {
    blob: new Blob([content] as ConstructorParameters<typeof Blob>[0], { type }),
    filename,
    contentId,
  };
}

export function toForm(file: FileInput): FormData {
  const { blob, filename } = read(file);
  const form = new FormData();
  form.append('file', blob, filename);
  return form;
}

/**
 * The files as `attachments` of a message or draft: small ones in base64, others as uploads.
 *
 * @param upload returns the id of the uploaded file; `number` is its place in the list, from 1.
 */
export async function attach(
  files: readonly FileInput[],
  upload: (file: FileInput, number: number) => Promise<string>,
): Promise<AttachmentInput[]> {
  const attachments: AttachmentInput[] = [];
  let inlineBytes = 0;
  for (const [index, file] of files.entries()) {
    const { blob, filename, contentId } = read(file);
    const common = contentId === undefined ? {} : { content_id: contentId };
    if (inlineBytes + blob.size > INLINE_BYTES) {
      attachments.push({ ...common, attachment_id: await upload(file, index + 1) });
      continue;
    }
    inlineBytes += blob.size;
    const content = Buffer.from(await blob.arrayBuffer()).toString('base64');
    attachments.push({ ...common, filename, content, ...(blob.type ? { content_type: blob.type } : {}) });
  }
  return attachments;
}
