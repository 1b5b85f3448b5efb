import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import { errorPage, POLICY } from '../unsubscribe-page.ts';
import { type Language, WORDS } from '../unsubscribe-words.ts';

/**
 * Makes routes speak to people: a body of any type is read and dropped, since whoever posts here has said all by the
 * address, and a browser gets an error as a page. Programs get the same JSON as everywhere.
 */
export function speakHtml(pages: FastifyInstance): void {
  pages.removeAllContentTypeParsers();
  pages.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => {
    done(null, undefined);
  });
  pages.addHook('onRequest', async ({ headers }) => {
    // One that is malformed would be refused before any parser is asked.
    delete headers['content-type'];
  });
  pages.addHook('onSend', async (request, reply, payload) => {
    if (reply.statusCode < 400 || !readsHtml(request)) return payload;
    dress(request, reply);
    return errorPage(languageOf(request), reply.statusCode === 404 ? 'unknown' : 'trouble');
  });
}

/** Answers with a page in the reader's language. */
export function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  page: (language: Language) => string,
): FastifyReply {
  dress(request, reply);
  return reply.send(page(languageOf(request)));
}

function dress(request: FastifyRequest, reply: FastifyReply): void {
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

/** A browser names HTML; who takes anything is a program. */
function readsHtml(request: FastifyRequest): boolean {
  return new Negotiator(request).mediaType(['application/json', 'text/html']) === 'text/html';
}

function languageOf(request: FastifyRequest): Language {
  const [first, ...others] = Object.keys(WORDS) as [Language, ...Language[]];
  const best = new Negotiator(request).language([first, ...others]);
  return others.find((language) => language === best) ?? first;
}
