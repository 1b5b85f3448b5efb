import { Type } from 'typebox';
import { makeUnsubscribeTokens } from '../../domain/email/unsubscribe-token.ts';
import { findSubscriber, unsubscribe } from '../../intake/unsubscribe.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { sendPage } from '../docs/pages.ts';
import { type Route, route } from '../route.ts';
import { askPage, donePage } from '../unsubscribe-page.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

/** Anyone may send this body without a key. A mail client sends 26 bytes. */
const MAX_BODY_BYTES = 10_000;

interface UnsubscribeRoutesDeps {
  readonly pool: Pool;
  readonly secretKey: SecretKeys;
  readonly wakeRelay: () => void;
}

const schema = {
  tags: ['Unsubscribe'],
  hide: true,
  params: Type.Object({ token: Type.String() }),
  // Click trackers add query parameters to links.
  querystring: Type.Object({}),
};

/** The page behind the link of a marketing email. It changes nothing, since scanners follow every link. */
export function askToUnsubscribe({ pool, secretKey }: UnsubscribeRoutesDeps): Route {
  const tokens = makeUnsubscribeTokens(secretKey);
  const asking = route({ ...schema, summary: 'Ask whether to unsubscribe' }, async (request, reply) => {
    const subscriber = await findSubscriber(pool, tokens, request.params.token);
    return sendPage(request, reply, (language) => askPage(language, subscriber));
  });
  return { ...asking, isPage: true, networkLimit: 'requests' };
}

/** Unsubscribes immediately: for the page's form, and for one-click unsubscribe of mail clients (RFC 8058). */
export function unsubscribeNow(deps: UnsubscribeRoutesDeps): Route {
  const tokens = makeUnsubscribeTokens(deps.secretKey);
  const doing = route({ ...schema, summary: 'Unsubscribe' }, async (request, reply) => {
    const subscriber = await findSubscriber(deps.pool, tokens, request.params.token);
    await unsubscribe(deps, subscriber);
    return sendPage(request, reply, (language) => donePage(language, subscriber));
  });
  return { ...doing, isPage: true, bodyLimit: MAX_BODY_BYTES, networkLimit: 'requests' };
}
