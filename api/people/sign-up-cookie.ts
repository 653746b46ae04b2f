/** Proves that the browser which opens the mailed link is the one that signed up. */
export const SIGN_UP_COOKIE = 'sign-up';
export const SIGN_UP_COOKIE_SECONDS = 86_400;
