import { findSubscriber, unsubscribe } from '../../intake/unsubscribe.ts';
import { sendPage } from '../plugins/browser-pages.ts';
import { hiddenRoute } from '../route.ts';
import { askPage, donePage } from '../unsubscribe-page.ts';
import { emailLink } from './tracking.ts';

/** The maximum size of a body, which needs no authentication. A mail client sends 26 bytes. */
const MAX_BODY_BYTES = 10_000;

/** Serves the page for the unsubscribe link of a marketing email. GET changes nothing, because scanners follow every link. */
export const askToUnsubscribe = hiddenRoute({
  ...emailLink,
  handler: async ({ pool, unsubscribeTokens }, request, reply) => {
    const subscriber = await findSubscriber(pool, unsubscribeTokens, request.params.token);
    return sendPage(request, reply, (language) => askPage(language, subscriber));
  },
  options: { isPage: true, networkLimit: 'requests' },
});

/** Unsubscribes immediately: for the form of the page, and for one-click unsubscribe by mail clients (RFC 8058). */
export const unsubscribeNow = hiddenRoute({
  ...emailLink,
  handler: async (deps, request, reply) => {
    const subscriber = await findSubscriber(deps.pool, deps.unsubscribeTokens, request.params.token);
    await unsubscribe(deps, subscriber);
    return sendPage(request, reply, (language) => donePage(language, subscriber));
  },
  options: { isPage: true, bodyLimit: MAX_BODY_BYTES, networkLimit: 'requests' },
});
