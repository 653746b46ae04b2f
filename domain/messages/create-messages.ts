import type { OptionsOf } from '../../platform/options-of.ts';
import { createAgentMessageService } from './agent-message.service.ts';
import { createAlarmService } from './alarm.service.ts';
import { createDeletionService } from './deletion.service.ts';
import { createLabelService } from './label.service.ts';
import { createMessageService } from './message.service.ts';
import { createMessageFrameService } from './message-frame.service.ts';
import { createMessageTimelineService } from './message-timeline.service.ts';
import { createMessageWaitService } from './message-wait.service.ts';
import { createRawMessageService } from './raw-message.service.ts';
import { createThreadService } from './thread.service.ts';

type Options = OptionsOf<typeof createDeletionService> &
  OptionsOf<typeof createAgentMessageService> &
  OptionsOf<typeof createLabelService> &
  OptionsOf<typeof createRawMessageService> &
  OptionsOf<typeof createMessageFrameService> &
  Omit<OptionsOf<typeof createMessageWaitService>, 'messages'>;

/** What the API does with stored messages. */
export function createMessages(options: Options) {
  const messages = createMessageService(options);
  return {
    messages,
    agentMessages: createAgentMessageService(options),
    messageWaits: createMessageWaitService({ ...options, messages }),
    alarms: createAlarmService(options),
    deletions: createDeletionService(options),
    labels: createLabelService(options),
    rawMessages: createRawMessageService(options),
    messageFrames: createMessageFrameService(options),
    messageTimelines: createMessageTimelineService(options),
    threads: createThreadService(options),
  };
}
