import type { Tool } from '../tool.ts';
import { accountTools } from './account.ts';
import { draftTools } from './drafts.ts';
import { messageTools } from './messages.ts';
import { sendTools } from './sends.ts';
import { threadTools } from './threads.ts';
import { waitTools } from './waits.ts';

/** Every tool, in the order in which hosts see them. A person approves a send: there is no tool for it. */
export const TOOLS: readonly Tool[] = [
  ...accountTools,
  ...messageTools,
  ...threadTools,
  ...waitTools,
  ...sendTools,
  ...draftTools,
];
