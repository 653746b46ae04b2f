import { expect, test } from '@jest/globals';
import { renderEmail } from '../../domain/notifications/render-email.ts';
import { renderTemplate } from '../../domain/notifications/templates.ts';

const organizationId = 'org_01';
const warning = { organizationId, days: 30, firstDeletionAt: '2026-12-08 15:00 UTC' };

test.each([
  [
    'notice',
    renderTemplate('retention-notice', warning),
    'Messages older than 30 days will be deleted starting 2026-12-08',
  ],
  [
    'final notice',
    renderTemplate('retention-final-notice', warning),
    'Messages older than 30 days will be deleted tomorrow',
  ],
  [
    'reminder',
    renderTemplate('retention-reminder', { organizationId, days: 30, before: '2026-12-08 15:00 UTC' }),
    'Reminder: messages older than 30 days are deleted daily',
  ],
])('the email “%s” says what is deleted, when, and how to prevent it', (_name, content, subject) => {
  const { subject: line, text, html } = renderEmail(content, 'https://mail.example');
  expect(line).toContain(subject);
  for (const body of [text, html]) {
    expect(body).toContain('2026-12-08 15:00 UTC');
    expect(body).toContain('GET /api/v1/organizations/org_01/export');
    expect(body).toContain('POST /api/v1/organizations/org_01/retention-policy/postpone');
  }
});

test('uses the singular for one day', () => {
  expect(renderTemplate('retention-final-notice', { ...warning, days: 1 }).subject).toContain(
    'older than 1 day ',
  );
});
