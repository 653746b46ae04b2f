import type { Tool } from '../tool.ts';
import { accountTools } from './account.ts';
import { messageTools } from './messages.ts';
import { threadTools } from './threads.ts';

/** Every tool, in the order in which hosts see them. A person approves a send: there is no tool for it. */
export const TOOLS: readonly Tool[] = [...accountTools, ...messageTools, ...threadTools];
