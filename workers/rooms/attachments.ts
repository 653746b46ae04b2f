import { deleteUnusedUploads } from '../../domain/attachments/unused-uploads.ts';
import type { Room } from '../room.ts';

export const attachmentsRoom: Room = {
  maintenance: ({ database }) => ({ sweeps: { unusedUploads: () => deleteUnusedUploads(database) } }),
};
