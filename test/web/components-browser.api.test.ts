import { describe, expect, test } from '@jest/globals';
import { browserObstacle, expectFocus, openConsole, useBrowser } from '../support/console-browser.ts';
import { useTestApp } from '../support/resources.ts';

(browserObstacle ? describe.skip : describe)('the design system in Chromium', () => {
  const app = useTestApp();
  const browser = useBrowser();
  let origin: Promise<string> | undefined;
  const listen = () => {
    origin ??= app.app.listen({ host: 'localhost', port: 0 });
    return origin;
  };

  test.each(
    ([390, 1280] as const).flatMap((width) =>
      (['light', 'dark'] as const).map((scheme) => [width, scheme] as const),
    ),
  )('every part is accessible and fits %d pixels in %s colors', async (width, colorScheme) => {
    const { page, visit, expectSound, close } = await openConsole(browser, await listen(), {
      width,
      colorScheme,
    });
    await visit('/_components');
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Go back' }).waitFor();
    await expectSound();
    await page.keyboard.press('Escape');
    await page.getByLabel('Name').fill('kept');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('is taken').first().waitFor();
    const field = page.getByLabel('Name');
    expect(await field.inputValue()).toBe('kept');
    await expectFocus(field);
    await expectSound();
    await close();
  });
});
