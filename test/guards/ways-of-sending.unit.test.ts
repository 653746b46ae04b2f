import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

/** What puts an outbound message into the database. The first stores it, the second only passes a submission on to it. */
const CREATES = /(?<!function )\bcreate(?:Outbound|Submitted)Message\(/;
const PASSES_ON = 'createSubmittedMessage';

const sources = listSourceFiles(['domain', 'activities', 'api', 'web', 'workers']).map((file) => ({
  file,
  source: readFileSync(file, 'utf8'),
}));

/** The top-level functions of a file. */
function readFunctions(source: string): { name: string; body: string }[] {
  return source
    .split(/^(?=(?:export )?(?:async )?function )/m)
    .map((body) => ({ name: /^(?:export )?(?:async )?function (\w+)/.exec(body)?.[1] ?? '', body }));
}

/** Functions that create an outbound message, with whether they ask the gate and heed that it wants an approval. */
function findSenders(source: string) {
  return readFunctions(source)
    .filter(({ name, body }) => name !== PASSES_ON && CREATES.test(body))
    .map(({ name, body }) => ({
      name,
      isGated: /\bcheckSend\(/.test(body) && /\bif \(needsApproval\)/.test(body),
    }));
}

test('each way to send asks the send gate, and waits if the gate wants an approval', () => {
  const senders = sources.flatMap(({ file, source }) =>
    findSenders(source).map((sender) => ({ file, ...sender })),
  );
  expect(senders.length).toBeGreaterThanOrEqual(5);
  expect(senders.filter(({ isGated }) => !isGated)).toEqual([]);
});

test('outbound messages are stored in one place, and only an approver approves', () => {
  const having = (text: RegExp) => sources.filter(({ source }) => text.test(source)).map(({ file }) => file);
  expect(having(/insertInto\('messages'\)|insert into messages\b/).sort()).toEqual([
    'domain/inbound/create-received-message.ts',
    'domain/outbound/send.service.ts',
  ]);
  expect(having(/isApproved: true/)).toEqual(['domain/drafts/approval.service.ts']);
});

test('the guard finds a way to send that does not ask, or does not wait', () => {
  const ways = [
    'async function one() { return createOutboundMessage(t); }',
    'function two() { await checkSend(t); return createSubmittedMessage(t); }',
    'function three() { await checkSend(t); if (needsApproval) return; return createOutboundMessage(t); }',
  ];
  expect(findSenders(ways.join('\n')).map(({ name, isGated }) => [name, isGated])).toEqual([
    ['one', false],
    ['two', false],
    ['three', true],
  ]);
});
