import { expect, test } from '@jest/globals';
import { renderTemplate, type TemplateParams } from '../../domain/notifications/templates.ts';

const notice: TemplateParams['usage-warning'] = {
  organizationId: 'org_1',
  counter: 'messages_sent',
  current: 2_412,
  limit: 3_000,
  percentage: 80.4,
  kind: 'hard',
  resetsAt: '2026-12-01',
};

test('a warning names the month, the numbers and what comes at 100 %', () => {
  expect(renderTemplate('usage-warning', notice)).toEqual({
    subject: '80.4 % of messages_sent are used',
    body: [
      'Your organization has used 80.4 % of what it may have of messages_sent in 2026-11.',
      [
        ['Organization', 'org_1'],
        ['Counter', 'messages_sent'],
        ['Used', '2412'],
        ['Limit', '3000'],
        ['Starts anew', '2026-12-01'],
      ],
      expect.stringMatching(/^At 100 %: Nothing more is sent until the month is over/),
      expect.stringContaining('GET and PUT /api/v1/org/limits'),
    ],
  });
});

test('of a soft limit nothing is refused', () => {
  const { subject, body } = renderTemplate('usage-exceeded', { ...notice, percentage: 110, kind: 'soft' });
  expect(subject).toBe('The limit of messages_sent is reached');
  expect(body).toContain('The limit is soft: nothing is refused for it.');
});

test('a level has no month', () => {
  const { body } = renderTemplate('usage-exceeded', { ...notice, counter: 'storage_bytes', resetsAt: null });
  expect(body[0]).toBe('Your organization has used 80.4 % of what it may have of storage_bytes.');
  expect(JSON.stringify(body)).not.toContain('Starts anew');
});
