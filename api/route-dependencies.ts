import type { Config } from '../platform/config.ts';
import type { Cursors } from '../platform/cursor.ts';
import type { Dependencies } from '../platform/dependencies.ts';
import type { RunOnce } from '../platform/idempotency/run-once.ts';
import type { QueueAges } from '../platform/outbox/queue-ages.ts';
import type { Lists } from './lists.ts';
import type { MessageViews } from './messages/message-views.ts';
import type { BrowserSignIn } from './people/browser-sign-in.ts';
import type { BrowserSession } from './plugins/browser-session.ts';
import type { Cookies } from './plugins/cookies.ts';
import type { OpenResponses } from './plugins/open-responses.ts';
import type { Services } from './services.ts';

/** Everything that routes depend on. Each route file declares only what it uses. */
export interface RouteDependencies extends Services {
  config: Config;
  lists: Lists;
  messageViews: MessageViews;
  cursors: Cursors;
  cookies: Cookies;
  browserSession: BrowserSession;
  browserSignIn: BrowserSignIn;
  /** Runs the work of a form once, however often a browser submits it. */
  runOnce: RunOnce;
  openResponses: OpenResponses;
  dependencies: Dependencies;
  queueAges: QueueAges;
  /** Interval at which a response that stays open sends a heartbeat and checks its credential again. */
  heartbeatMs: number;
}
