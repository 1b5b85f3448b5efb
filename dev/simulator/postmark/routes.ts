import type { FastifyError, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { isSame } from '../../../src/lib/digest.ts';
import type { Dns } from '../../../src/providers/dns.ts';
import { domainRoutes } from './domains.ts';
import { CODE, Refusal } from './errors.ts';
import { searchRoutes, type SearchParts } from './search.ts';
import { sendRoutes, type SendParts } from './send.ts';
import { suppressionRoutes } from './suppressions.ts';

interface PostmarkParts extends SendParts, SearchParts {
  /** The server token that callers must send; null accepts any. */
  readonly serverToken: string | null;
  /** The account token that callers must send; null accepts any. */
  readonly accountToken: string | null;
  /** The resolver that verifies domains; null verifies none. */
  readonly dns: Dns | null;
  readonly log: Logger;
}

/** The part of Postmark's API that Sendwright uses. `app` must be a separate scope, because it gets Postmark's errors. */
export function postmarkRoutes(app: FastifyInstance, parts: PostmarkParts): void {
  app.setErrorHandler((error: FastifyError | Refusal, _request, reply) => {
    const refusal = error instanceof Refusal ? error : translate(error);
    if (refusal.status >= 500 && !parts.ending.aborted) parts.log.error({ err: error }, 'simulator: request failed');
    return reply.code(refusal.status).send(refusal.body);
  });

  void app.register(async (server) => {
    requireToken(server, 'Server', parts.serverToken);
    sendRoutes(server, parts);
    searchRoutes(server, parts);
    suppressionRoutes(server, parts.suppressions);
  });
  void app.register(async (account) => {
    requireToken(account, 'Account', parts.accountToken);
    domainRoutes(account, parts.dns);
  });
}

/** Refuses requests without a token of this kind. @param expected null accepts any */
function requireToken(app: FastifyInstance, kind: 'Server' | 'Account', expected: string | null): void {
  const name = `X-Postmark-${kind}-Token`;
  app.addHook('onRequest', async ({ headers }) => {
    const token = headers[name.toLowerCase()];
    const right = typeof token === 'string' && token !== '' && isSame(token, expected ?? token);
    if (!right) throw new Refusal(401, CODE.token, `The ${kind} Token you provided in ${name} is wrong.`);
  });
}

function translate({ code, message }: FastifyError): Refusal {
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Refusal(422, CODE.jsonRequired, 'JSON required.');
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Refusal(413, CODE.invalidEmail, message);
  return new Refusal(500, CODE.maintenance, 'The simulator failed; its log says why.');
}
