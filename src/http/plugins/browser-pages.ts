import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { acceptedLanguage, acceptsHtml } from '../../lib/negotiation.ts';
import { acceptAnyBody } from './any-body.ts';
import { errorPage, POLICY } from '../unsubscribe-page.ts';
import { type Language, WORDS } from '../unsubscribe-words.ts';

/**
 * Configures routes for browsers. Request bodies of any type are discarded, because the URL identifies the request. Browsers get
 * errors as HTML pages; other clients get JSON errors.
 */
export function serveHtml(pages: FastifyInstance): void {
  acceptAnyBody(pages, () => undefined);
  pages.addHook('onSend', async (request, reply, payload) => {
    if (reply.statusCode < 400 || !acceptsHtml(request)) return payload;
    setPageHeaders(request, reply);
    return errorPage(languageOf(request), reply.statusCode === 404 ? 'unknown' : 'trouble');
  });
}

export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  page: (language: Language) => string,
): FastifyReply {
  setPageHeaders(request, reply);
  return reply.send(page(languageOf(request)));
}

function setPageHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({
    'content-type': 'text/html; charset=utf-8',
    'content-language': languageOf(request),
    'content-security-policy': POLICY,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    vary: 'accept, accept-language',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'x-robots-tag': 'noindex, nofollow',
  });
}

function languageOf(request: FastifyRequest): Language {
  return acceptedLanguage(request, Object.keys(WORDS) as Language[]) ?? 'en';
}
