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

test('a warning names the month, the numbers and what happens at 100%', () => {
  expect(renderTemplate('usage-warning', notice)).toEqual({
    subject: '80.4% of your messages_sent limit used',
    body: [
      'Your organization has used 80.4% of its messages_sent limit for 2026-11.',
      [
        ['Organization', 'org_1'],
        ['Counter', 'messages_sent'],
        ['Used', '2412'],
        ['Limit', '3000'],
        ['Resets on', '2026-12-01'],
      ],
      expect.stringMatching(/^At 100%: No more messages are sent until the month ends/),
      expect.stringContaining('GET and PUT /api/v1/org/limits'),
    ],
  });
});

test('a soft limit rejects nothing', () => {
  const { subject, body } = renderTemplate('usage-exceeded', { ...notice, percentage: 110, kind: 'soft' });
  expect(subject).toBe('messages_sent limit reached');
  expect(body).toContain('This is a soft limit: nothing is rejected.');
});

test('storage has no month', () => {
  const { body } = renderTemplate('usage-exceeded', { ...notice, counter: 'storage_bytes', resetsAt: null });
  expect(body[0]).toBe('Your organization has used 80.4% of its storage_bytes limit.');
  expect(JSON.stringify(body)).not.toContain('Resets on');
});
