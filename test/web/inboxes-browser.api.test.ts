import { describe, expect, test } from '@jest/globals';
import { InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { browserObstacle, expectFocus, openConsole, useBrowser } from '../support/console-browser.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const UNBROKEN = 'x'.repeat(200);

(browserObstacle ? describe.skip : describe)('the first steps in Chromium', () => {
  const app = useTestApp();
  const browser = useBrowser();

  test('from Overview: an inbox is created, a message sent, and its reply arrives live', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const userId = await createTestUser(app.worker, { organizationId });
    const { token } = await createTestSession(app.worker, userId);
    const origin = await app.app.listen({ host: 'localhost', port: 0 });
    const { page, visit, expectSound, resize, close } = await openConsole(browser, origin, { token });
    await visit('/overview');
    await page.getByRole('link', { name: 'Create an inbox' }).click();
    await page.getByLabel('Name of the agent').fill(`Support ${UNBROKEN}`);
    const username = `browser-${Date.now()}`;
    await page.getByLabel('Address before the @').fill(username);
    await expectSound();
    await page.getByRole('button', { name: 'Create inbox' }).click();
    await page.getByText('The inbox is created.').waitFor();
    await expectSound();

    await page.getByRole('link', { name: 'Write a message' }).first().click();
    await page.getByLabel('To', { exact: true }).fill('no address');
    await page.getByLabel('Subject').fill(UNBROKEN);
    await page.getByLabel('Text').fill('Is it ready?');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    // The person is told at the field, which has the focus, and nothing that was written is lost.
    const to = page.getByLabel('To', { exact: true });
    await page.locator('#field-to-error').waitFor();
    await expectFocus(to);
    expect(await page.getByLabel('Text').inputValue()).toBe('Is it ready?');
    await expectSound();
    await to.fill('ada@people.example');
    await page.getByRole('button', { name: 'Send', exact: true }).dblclick();
    await page.waitForURL(/\/messages\/msg_/);
    await page.getByText('The message is on its way.').waitFor();

    const inbox = await app.worker.db
      .selectFrom('inboxes')
      .select(columnsOf(InboxEntity))
      .where('org_id', '=', organizationId)
      .executeTakeFirstOrThrow();
    const sent = await app.worker.db
      .selectFrom('messages')
      .select('rfc_message_id as rfcMessageId')
      .where('inbox_id', '=', inbox.id)
      .execute();
    expect(sent).toHaveLength(1);
    await visit(`/inboxes/${inbox.id}`);
    const { receive } = await arrangeInbox(app.worker, {}, inbox);
    await receive(
      mail(
        {
          From: `"${UNBROKEN}" <ada@people.example>`,
          Subject: `Re: ${UNBROKEN}`,
          'In-Reply-To': `<${sent[0]?.rfcMessageId}>`,
        },
        'Yes, it is ready. مرحبا <script>alert(1)</script>',
      ),
    );
    await page.getByText('Yes, it is ready.').waitFor();
    // What the person has selected stays selected when more arrives.
    const selected = page.getByRole('checkbox', { name: /^Select Re: / });
    await selected.check();
    await selected.blur();
    await receive(mail({ From: 'bob@people.example', Subject: 'Lunch' }, 'At noon?'));
    await page.getByText('At noon?').waitFor();
    expect(await selected.isChecked()).toBe(true);
    await expectSound();
    await resize(390);
    await expectSound();
    for (const path of [
      '/overview',
      '/inboxes',
      '/inboxes/new',
      `/inboxes/${inbox.id}/settings`,
      `/inboxes/${inbox.id}/compose`,
      `/inboxes/${inbox.id}?q=ready`,
    ])
      await visit(path);
    await page.goto(`${origin}/inboxes`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByLabel('Reason').fill('Too many questions');
    await expectSound();
    await page.getByRole('button', { name: 'Pause sending' }).click();
    await page.getByText('Sending is paused.').waitFor();
    await expectSound();
    await close();
  }, 60_000);
});
