import { Type } from 'typebox';
import { makeUnsubscribeTokens } from '../../domain/email/unsubscribe-token.ts';
import { findSubscriber, unsubscribe } from '../../intake/unsubscribe.ts';
import type { Pool } from '../../store/postgres/pool.ts';
import { sendPage } from '../docs/pages.ts';
import { type Route, route } from '../route.ts';
import { askPage, donePage } from '../unsubscribe-page.ts';
import type { SecretKeys } from '../../lib/secret-key.ts';

/** Bytes of a body that anybody may send without a key; a mail program's has 26. */
const BODY_LIMIT = 10_000;

interface UnsubscribeRoutesDeps {
  readonly pool: Pool;
  readonly secretKey: SecretKeys;
  readonly wakeRelay: () => void;
}

const schema = {
  tags: ['Unsubscribe'],
  hide: true,
  params: Type.Object({ token: Type.String() }),
  // Whoever counts clicks hangs parameters of his own on links.
  querystring: Type.Object({}),
};

/** The page behind the link of a marketing email. Changes nothing: scanners follow every link. */
export function askToUnsubscribe({ pool, secretKey }: UnsubscribeRoutesDeps): Route {
  const tokens = makeUnsubscribeTokens(secretKey);
  const asking = route({ ...schema, summary: 'Ask whether to unsubscribe' }, async (request, reply) => {
    const subscriber = await findSubscriber(pool, tokens, request.params.token);
    return sendPage(request, reply, (language) => askPage(language, subscriber));
  });
  return { ...asking, isPage: true, networkLimit: 'requests' };
}

/** Unsubscribes at once: the page's own form, and a mail program's one click (RFC 8058). */
export function unsubscribeNow(deps: UnsubscribeRoutesDeps): Route {
  const tokens = makeUnsubscribeTokens(deps.secretKey);
  const doing = route({ ...schema, summary: 'Unsubscribe' }, async (request, reply) => {
    const subscriber = await findSubscriber(deps.pool, tokens, request.params.token);
    await unsubscribe(deps, subscriber);
    return sendPage(request, reply, (language) => donePage(language, subscriber));
  });
  return { ...doing, isPage: true, bodyLimit: BODY_LIMIT, networkLimit: 'requests' };
}
