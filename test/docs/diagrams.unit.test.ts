import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { readDiagram } from '../../dev/docs/diagrams.ts';

test('a sequence becomes steps between participants, with its notes and branches', () => {
  const steps = readDiagram(`sequenceDiagram
  participant A as Agent
  participant API
  A->>API: POST /drafts/{id}/send
  API-->>A: 201: queued
  Note over A,API: after the commit
  alt in time
    API-)A: event
  else too late
    loop each recipient
      A-xAPI: nothing
    end
  end
`);
  expect(steps).toEqual([
    { from: 'Agent', to: 'API', text: 'POST /drafts/{id}/send' },
    { from: 'API', to: 'Agent', text: '201: queued' },
    { note: 'after the commit' },
    { note: 'If in time:' },
    { from: 'API', to: 'Agent', text: 'event' },
    { note: 'Otherwise, too late:' },
    { note: 'For each recipient:' },
    { from: 'Agent', to: 'API', text: 'nothing' },
  ]);
});

test('a graph becomes its edges, by the names of its nodes', () => {
  const steps = readDiagram(`flowchart LR
  send[send, reply,<br>SMTP] -->|no approval| message
  send -->|"202 (SMTP 250)"| pending[draft: pending_approval] --> message
  pg[(PostgreSQL)] -. start, signal .-> known{The address has an account?}
`);
  expect(steps).toEqual([
    { from: 'send, reply, SMTP', to: 'message', text: 'no approval' },
    { from: 'send, reply, SMTP', to: 'draft: pending_approval', text: '202 (SMTP 250)' },
    { from: 'draft: pending_approval', to: 'message', text: '' },
    { from: 'PostgreSQL', to: 'The address has an account?', text: 'start, signal' },
  ]);
});

test('a state diagram becomes its transitions', () => {
  expect(readDiagram('stateDiagram-v2\n  [*] --> draft: create\n  draft --> [*]')).toEqual([
    { from: '', to: 'draft', text: 'create' },
    { from: 'draft', to: '', text: '' },
  ]);
});

test('every line of the diagrams in docs/ that connects two things is a step, without marks of Mermaid', () => {
  const diagrams = globSync('docs/**/*.md').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)].map(([, source = '']) => ({
      file,
      source,
    })),
  );
  expect(diagrams.length).toBeGreaterThan(15);
  for (const { file, source } of diagrams) {
    const steps = readDiagram(source);
    const arrows = source.match(/-->>|->>|-\)|-->|\.->/g) ?? [];
    const connections = steps.filter((step) => 'from' in step);
    expect({ file, source, count: connections.length }).toEqual({ file, source, count: arrows.length });
    expect({ file, marks: JSON.stringify(steps).match(/-->|->>|\|"|<br>|\[\(|\(\[|\w\[\w/g) }).toEqual({
      file,
      marks: null,
    });
  }
});
