import { existsSync } from 'node:fs';
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core';

/**
 * Where Debian, Ubuntu and Google install Chromium; CHROMIUM_PATH names another one. First its build that has no window, which
 * takes half the processor time.
 */
const PATHS = [
  process.env.CHROMIUM_PATH ?? '',
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

const findChromium = (): string | undefined => PATHS.find((path) => path !== '' && existsSync(path));

/** Why tests in a browser cannot run here. Undefined if they can. `.ci/run` installs Chromium from Debian. */
export function findBrowserObstacle(): string | undefined {
  return findChromium() === undefined
    ? 'Chromium is not installed (apt-get install chromium-headless-shell)'
    : undefined;
}

/** Starts Chromium without a window. The caller closes it. */
export function launchBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error(findBrowserObstacle());
  return chromium.launch({
    executablePath,
    // Chromium's sandbox does not work under root, as in most containers. The tests open only pages of their own.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
}

/** A passkey provider that approves everything, for one page. */
export async function addVirtualAuthenticator(
  page: Page,
): Promise<{ cdp: CDPSession; authenticatorId: string }> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { cdp, authenticatorId };
}
