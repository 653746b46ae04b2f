import { expect, test } from '@jest/globals';
import { renderEmail } from '../../domain/notifications/render-email.ts';
import { renderTemplate } from '../../domain/notifications/templates.ts';

const organizationId = 'org_01';
const warning = { organizationId, days: 30, firstDeletionAt: '2026-12-08 15:00 UTC' };

test.each([
  ['set', renderTemplate('retention-notice', warning), 'Mail older than 30 days will be deleted'],
  [
    'tomorrow',
    renderTemplate('retention-final-notice', warning),
    'Tomorrow mail older than 30 days is deleted',
  ],
  [
    'reminder',
    renderTemplate('retention-reminder', { organizationId, days: 30, before: '2026-12-08 15:00 UTC' }),
    'Reminder: mail older than 30 days is deleted every day',
  ],
])('the mail “%s” says what goes, when, and how to keep it', (_name, letter, subject) => {
  const { subject: line, text, html } = renderEmail(letter);
  expect(line).toContain(subject);
  for (const body of [text, html]) {
    expect(body).toContain('2026-12-08 15:00 UTC');
    expect(body).toContain('GET /api/v1/organizations/org_01/export');
    expect(body).toContain('POST /api/v1/organizations/org_01/retention-policy/postpone');
  }
});

test('a day is a day', () => {
  expect(renderTemplate('retention-final-notice', { ...warning, days: 1 }).subject).toContain(
    'older than 1 day ',
  );
});
